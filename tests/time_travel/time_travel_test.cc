// tests/time_travel/time_travel_test.cc: what was built once with ABI 1.0 under the core of today, and the plugins of today under
// the core of then.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "support/test_world.h"

using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

const fs::path kBuilt = FLHAL_TEST_BINARY_DIR "/tests/time_travel.d";                    // from the frozen sources, here
const fs::path kKept = FLHAL_TEST_SOURCE_DIR "/abi/1.0/time_travel/x86_64";              // the binaries that were kept
const fs::path kCore = FLHAL_TEST_BINARY_DIR "/src";

// Where the frozen programs lie: as they were kept, and built again.
std::vector<fs::path> frozen() {
#if defined(__x86_64__)
  return {kKept, kBuilt};
#else
  return {kBuilt};
#endif
}

struct NewPlugin {
  const char *id, *chip;
};
std::vector<NewPlugin> new_plugins() {
  std::vector<NewPlugin> all;
  for (NewPlugin p : {NewPlugin{"ram", "ram"}, {"mock", "chip_a"}, {"host", "host"}})
    if (fs::exists(FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_" + std::string(p.id) + ".so")) all.push_back(p);
  return all;
}
std::string library(const std::string& id) { return FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_" + id + ".so"; }

ProcessResult run_app(TestWorld& world, const fs::path& app, const fs::path& core, const std::string& plugin, const std::string& chip) {
  world.set("FLHAL_PLUGIN_FILES", plugin);
  world.set("LD_LIBRARY_PATH", core.string());
  return world.run({app.string(), chip});
}

}  // namespace

TEST_CASE("time travel: a plugin and a program of ABI 1.0 work under this core, binary for binary", "[time_travel][abi]") {
  for (const fs::path& folder : frozen()) {
    TestWorld world;
    ProcessResult r = run_app(world, folder / "app", kCore, (folder / "libflhal_plugin_frozen.so").string(), "frozen");
    INFO(folder << "\n" << r.describe());
    CHECK(r.ok());
    CHECK_THAT(r.out, Catch::Contains("ops: ok, add is native\n"));       // its own op, not somebody's
    CHECK_THAT(r.out, Catch::Contains("vendor op: ok\n"));
    CHECK_THAT(r.out, Catch::Contains("modules: ok, launched\n"));
    CHECK_THAT(r.out, Catch::EndsWith("end: ok\n"));
  }
}

TEST_CASE("time travel: a program of ABI 1.0 runs on the plugins of today", "[time_travel][abi]") {
  for (const fs::path& folder : frozen())
    for (const NewPlugin& plugin : new_plugins()) {
      TestWorld world;
      ProcessResult r = run_app(world, folder / "app", kCore, library(plugin.id), plugin.chip);
      INFO(folder << "\n" << r.describe());
      CHECK(r.ok());
      CHECK_THAT(r.out, Catch::EndsWith("end: ok\n"));
    }
}

TEST_CASE("time travel: the plugins of today work as core 1.0 uses them", "[time_travel][abi]") {
  for (const fs::path& folder : frozen())
    for (const NewPlugin& plugin : new_plugins()) {
      TestWorld world;
      ProcessResult r = world.run({(folder / "core").string(), library(plugin.id)});
      INFO(folder << "\n" << r.describe());
      CHECK(r.ok());
      CHECK_THAT(r.out, Catch::Contains("minor 1.0 of its 1."));
      CHECK_THAT(r.out, Catch::EndsWith("end: ok\n"));
    }
}

TEST_CASE("time travel: the whole core of ABI 1.0, built from its commit, runs the plugins of today", "[time_travel][abi]") {
  const char* full = std::getenv("FLHAL_TEST_FULL");
  if (full == nullptr || std::string(full) != "1") return;   // minutes of compiling: make test-full
  TestWorld world;
  world.unset("TMPDIR");
  ProcessResult built = world.run({FLHAL_TEST_SOURCE_DIR "/scripts/build_oldest_core.sh", FLHAL_TEST_BINARY_DIR "/oldest_core"}, 2400);
  INFO(built.describe());
  if (built.exit_code == 3) {
    WARN("skipped: this clone does not have the commit of core 1.0 (a shallow one; git fetch --unshallow)");
    return;
  }
  REQUIRE(built.ok());
  const fs::path core = FLHAL_TEST_BINARY_DIR "/oldest_core/build/src", app = frozen().front() / "app";
  std::vector<std::pair<std::string, std::string>> all = {{(frozen().front() / "libflhal_plugin_frozen.so").string(), "frozen"}};
  for (const NewPlugin& plugin : new_plugins()) all.emplace_back(library(plugin.id), plugin.chip);
  for (const auto& [plugin, chip] : all) {
    ProcessResult r = run_app(world, app, core, plugin, chip);
    INFO(r.describe());
    CHECK(r.ok());
    CHECK_THAT(r.out, Catch::EndsWith("end: ok\n"));
  }
}
