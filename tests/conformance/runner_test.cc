// tests/conformance/runner_test.cc: the program flhal-conformance as makers and their scripts use it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "support/test_world.h"

using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

const std::string kRam = FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_ram.so";
const std::string kMock = FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_mock.so";
const std::string kMutant = FLHAL_TEST_BINARY_DIR "/conformance/flhal_mutants.d/libflhal_mutant.so";

ProcessResult suite(TestWorld& world, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FLHAL_TEST_CONFORMANCE);
  return world.run(arguments);
}
ProcessResult wrong(TestWorld& world, const std::string& mutation, const std::string& filter, std::vector<std::string> more = {}) {
  world.set("FLHAL_MUTANT", mutation);
  world.set("FLHAL_MUTANT_BASE", kRam);
  std::vector<std::string> arguments = {"--quiet", "--plugin", kMutant, "--profile", "sync", "--filter", filter};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return suite(world, arguments);
}
std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
std::string content(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("conformance: a wrong command line is told with what is valid, and exit status 2", "[conformance][options]") {
  TestWorld world;
  auto refusal = [&](std::vector<std::string> arguments) {
    ProcessResult r = suite(world, std::move(arguments));
    INFO(r.describe());
    CHECK(r.exit_code == 2);
    return r.err;
  };
  CHECK_THAT(refusal({}), Catch::Contains("which plugin? --plugin FILE"));
  CHECK_THAT(refusal({"--plugin", "/nowhere.so"}), Catch::Contains("there is no such file"));
  CHECK_THAT(refusal({"--speed", "1"}), Catch::Contains("unknown option \"--speed\"; valid are --plugin"));
  CHECK_THAT(refusal({"--plugin", kRam, "--profile", "fast"}), Catch::Contains("valid are sync, kernel, async, ops"));
  CHECK_THAT(refusal({"--plugin", kRam, "--shard", "3/2"}), Catch::Contains("--shard 3/2: not understood"));
  CHECK_THAT(refusal({"--plugin", kRam, "--filter", "nothing.*"}), Catch::Contains("no id of profile"));
  CHECK_THAT(refusal({"judge"}), Catch::Contains("unknown command \"judge\"; valid are diff, pack, verify, table"));
}

TEST_CASE("conformance: shards are disjoint and together everything", "[conformance][select]") {
  TestWorld world;
  auto ids = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--list", "--profile", "async"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProcessResult r = suite(world, arguments);
    REQUIRE(r.ok());
    return lines(r.out);
  };
  auto whole = ids({}), first = ids({"--shard", "1/3"}), rest = ids({"--shard", "2/3"}), last = ids({"--shard", "3/3"});
  CHECK(whole.size() > 300);
  std::vector<std::string> together = first;
  together.insert(together.end(), rest.begin(), rest.end());
  together.insert(together.end(), last.begin(), last.end());
  std::sort(together.begin(), together.end());
  std::sort(whole.begin(), whole.end());
  CHECK(together == whole);
  auto copies = ids({"--filter", "copy.*,-copy.random.*"});
  CHECK(std::all_of(copies.begin(), copies.end(), [](const std::string& id) { return id.rfind("copy.", 0) == 0 && id.find("random") == std::string::npos; }));
}

TEST_CASE("conformance: every selected id has one record, in JSON, JUnit and TAP", "[conformance][report]") {
  TestWorld world;
  fs::path json = world.folder() / "r.json", junit = world.folder() / "r.xml";
  ProcessResult r = suite(world, {"--plugin", kRam, "--filter", "fill.*", "--profile", "sync", "--tap", "--report", json.string(), "--junit", junit.string()});
  INFO(r.describe());
  REQUIRE(r.ok());
  ProcessResult listed = suite(world, {"--list", "--filter", "fill.*", "--profile", "sync"});
  auto count = [](const std::string& text, const std::string& what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  size_t wanted = lines(listed.out).size();
  CHECK(count(content(json), "\"id\":\t\"fill.") == wanted);
  CHECK(count(content(junit), "<testcase") == wanted);
  CHECK(count(r.out, "\nok ") == wanted);
}

TEST_CASE("conformance: a crash and a time limit cost the case they meet, and name its duty", "[conformance][groups]") {
  TestWorld world;
  ProcessResult r = wrong(world, "shutdown_hangs", "abi.shutdown.returns,abi.table.*", {"--time-factor", "0.1"});
  INFO(r.describe());
  CHECK(r.exit_code == 1);
  CHECK_THAT(r.out, Catch::Contains("ran past its time limit; FLP-023 (shutdown): shutdown returns, with every thread joined"));
  CHECK_THAT(r.out, Catch::Contains("3 pass, 0 fail, 0 crash, 1 timeout"));
}

TEST_CASE("conformance: the summary names the fault, its duty and how to run it again", "[conformance][report]") {
  TestWorld world;
  ProcessResult r = wrong(world, "fill_drops_the_tail", "fill.pattern.4.*");
  INFO(r.describe());
  CHECK(r.exit_code == 1);
  CHECK_THAT(r.out, Catch::Contains("fail        fill.pattern.4.3"));
  CHECK_THAT(r.out, Catch::Contains("FLP-049 (fill): fill repeats the whole pattern"));
  CHECK_THAT(r.out, Catch::Contains("again: --filter fill.pattern.4.1"));
}

TEST_CASE("conformance: a waiver holds to its last day, for its id only", "[conformance][waivers]") {
  TestWorld world;
  fs::path waivers = world.folder() / "waivers";
  std::ofstream(waivers) << "# known\nfill.pattern.4.3 2026-06-30 the driver drops the last element; fixed in 7.2\n";
  world.set("FLHAL_CONFORMANCE_TODAY", "2026-06-30");
  ProcessResult held = wrong(world, "fill_drops_the_tail", "fill.pattern.4.3", {"--waivers", waivers.string()});
  INFO(held.describe());
  CHECK(held.ok());
  CHECK_THAT(held.out, Catch::Contains("1 waived"));
  world.set("FLHAL_CONFORMANCE_TODAY", "2026-07-01");
  CHECK(wrong(world, "fill_drops_the_tail", "fill.pattern.4.3", {"--waivers", waivers.string()}).exit_code == 1);
  world.set("FLHAL_CONFORMANCE_TODAY", "2026-06-30");
  CHECK(wrong(world, "fill_drops_the_tail", "fill.pattern.4.1000", {"--waivers", waivers.string()}).exit_code == 1);
  std::ofstream(waivers) << "fill.pattern.4.3 someday because\n";
  CHECK_THAT(wrong(world, "none", "fill.*", {"--waivers", waivers.string()}).err, Catch::Contains("\"someday\" is no day"));
}

TEST_CASE("conformance: diff tells what got worse, and a submission belongs to its library", "[conformance][submission]") {
  TestWorld world;
  std::string good = (world.folder() / "good.json").string(), bad = (world.folder() / "bad.json").string(), packed = (world.folder() / "packed.json").string();
  REQUIRE(wrong(world, "none", "fill.pattern.*", {"--report", good}).ok());
  REQUIRE(wrong(world, "fill_drops_the_tail", "fill.pattern.*", {"--report", bad}).exit_code == 1);
  ProcessResult worse = suite(world, {"diff", good, bad});
  INFO(worse.describe());
  CHECK(worse.exit_code == 1);
  CHECK_THAT(worse.out, Catch::Contains("worse      fill.pattern.4.3 pass -> fail"));
  CHECK(suite(world, {"diff", bad, good}).ok());
  // A part of a run proves nothing; the whole one does, for the library it was made with.
  CHECK_THAT(suite(world, {"pack", good, "--plugin", kMutant, "--out", packed}).err, Catch::Contains("reaches no level"));
  REQUIRE(suite(world, {"--quiet", "--plugin", kRam, "--profile", "sync", "--report", good}).ok());
  REQUIRE(suite(world, {"pack", good, "--plugin", kRam, "--out", packed}).ok());
  ProcessResult verified = suite(world, {"verify", packed, "--plugin", kRam});
  CHECK_THAT(verified.out, Catch::Contains("ram 0.1.0 reaches level sync"));
  CHECK_THAT(suite(world, {"verify", packed, "--plugin", kMock}).err, Catch::Contains("belongs to another library"));
}

TEST_CASE("conformance: a claimed profile that the plugin does not have is a fault, not unsupported", "[conformance][profiles]") {
  TestWorld world;
  ProcessResult r = suite(world, {"--quiet", "--plugin", kRam, "--profile", "async", "--filter", "stream.create.gives_handle"});
  INFO(r.describe());
  CHECK(r.exit_code == 1);
  CHECK_THAT(r.out, Catch::Contains("the profile async needs the slots 18 to 28"));
}

TEST_CASE("conformance: nearly every row of the profile ops runs on the portable kernels", "[conformance][ops]") {
  TestWorld world;
  fs::path json = world.folder() / "r.json";
  ProcessResult r = suite(world, {"--quiet", "--plugin", FLHAL_TEST_EVERY_OP, "--profile", "ops", "--filter", "op.*", "--report", json.string(), "--jobs", "2"});
  INFO(r.describe());
  CHECK(r.ok());
  std::string text = content(json);
  size_t declined = 0, all = 0;
  for (size_t at = text.find("\"id\":"); at != std::string::npos; at = text.find("\"id\":", at + 1)) ++all;
  for (size_t at = text.find("\"not_supported\""); at != std::string::npos; at = text.find("\"not_supported\"", at + 1)) ++declined;
  CHECK(all > 2000);
  CHECK(declined < all / 50);
}
