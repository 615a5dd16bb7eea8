// tests/core/probe_cache_test.cc: answers are kept, and a cache that cannot be trusted or written only costs speed.
#include "core/probe_cache.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/discovery_world.h"

using namespace flhal;
using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

std::string asked(const DiscoveryWorld& world, const std::string& name = "ram.json") { return line_of(*world.look(), name).asked; }

bool has_note(const Discovery& found, const std::string& part) {
  for (const NoteLine& note : found.report.notes)
    if (has(note.reason, part) && !note.remedy.empty()) return true;
  return false;
}

}  // namespace

TEST_CASE("cache: the first look asks a child, the next ones the cache, and a changed library is asked again", "[core][cache]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  CHECK(asked(world) == "in a child, then in process");
  CHECK(asked(world) == "from the cache, then in process");
  const fs::path library = world.plugin_folder() / "libflhal_plugin_ram.so";
  fs::last_write_time(library, fs::last_write_time(library) - std::chrono::hours(1));
  CHECK(asked(world) == "in a child, then in process");
  setenv("ACME_VISIBLE_DEVICES", "0", 1);                      // a driver's own filter may change what it answers
  CHECK(asked(world) == "in a child, then in process");
  unsetenv("ACME_VISIBLE_DEVICES");
}

TEST_CASE("cache: a plugin that is not fork-safe is not opened by counting; its first open is", "[core][cache]") {
  DiscoveryWorld world;
  world.add_hostile("uuid_zero");                              // well-behaved but for its uuid, and not fork-safe
  CHECK(asked(world, "uuid_zero.json") == "in a child");
  Discovery* found = world.look();
  CHECK(line_of(*found, "uuid_zero.json").asked == "from the cache");
  REQUIRE(found->devices.size() == 1);
  CHECK_FALSE(found->plugins[0]->loaded);
  CHECK(found->devices[0]->open().ok());
  CHECK(found->plugins[0]->loaded);
}

TEST_CASE("cache: what a manifest names as changing the answer is part of the key", "[core][cache]") {
  TestWorld world;
  PluginFile file;
  file.path = "/x/lib.so";
  Manifest manifest;
  manifest.probe_environment = {"ACME_*"};
  manifest.probe_files = {(world.folder() / "driver_version").string()};
  const std::string first = probe_key(file, manifest);
  CHECK(probe_key(file, manifest) == first);
  std::ofstream(world.folder() / "driver_version") << "1";
  const std::string second = probe_key(file, manifest);
  CHECK(second != first);
  std::ofstream(world.folder() / "driver_version") << "2";
  CHECK(probe_key(file, manifest) != second);
  manifest.probe_files = {world.folder().string()};   // a folder: what comes and goes in it
  const std::string empty = probe_key(file, manifest);
  std::ofstream(world.folder() / "another.icd") << "x";
  CHECK(probe_key(file, manifest) != empty);
  const std::string third = probe_key(file, manifest);
  setenv("ACME_MODE", "slow", 1);
  CHECK(probe_key(file, manifest) != third);
  unsetenv("ACME_MODE");
  CHECK(probe_key(file, manifest) == third);
  file.build_id = "12";
  CHECK(probe_key(file, manifest) != third);
}

TEST_CASE("cache: a time-out is remembered for seconds, longer for each one in a row, and refresh or a longer limit ask at once", "[core][cache]") {
  DiscoveryWorld world;
  const fs::path file = world.folder() / "cache/flhal/probe.json";
  // The seconds that a time-out is remembered for, as the report says.
  auto seconds_left = [&]() -> int {
    Discovery* found = world.look();
    REQUIRE(line_of(*found, ".json").asked == "from the cache");
    CHECK(has(line_of(*found, ".json").remedy, "FLHAL_PROBE_CACHE=refresh"));
    const std::string reason = line_of(*found, ".json").reason, words = "(asked again by whoever starts in ";
    INFO(reason);
    REQUIRE(has(reason, words));
    return std::stoi(reason.substr(reason.find(words) + words.size()));
  };
  // Goes to the end of that time: the moment until which it is remembered becomes one of the past.
  auto run_out = [&] {
    std::ifstream in(file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t at = text.find("\"until_boot_s\":") + 15;
    REQUIRE(at > 15);
    text.replace(at, text.find_first_of(",}", at) - at, "1");
    std::ofstream(file, std::ios::trunc) << text;
  };
  REQUIRE(config_set("probe_timeout_ms", "300").ok());
  world.add_hostile("hang_in_init");
  CHECK(has(line_of(*world.look(), ".json").reason, "did not answer within 300 ms"));
  const int first = seconds_left();
  CHECK((first > 5 && first <= 10));
  run_out();
  CHECK(line_of(*world.look(), ".json").asked == "in a child");
  const int second = seconds_left();
  CHECK((second > 10 && second <= 20));
  for (int i = 0; i < 5; ++i) {
    run_out();
    CHECK(line_of(*world.look(), ".json").asked == "in a child");
  }
  const int last = seconds_left();
  CHECK((last > 150 && last <= 160));

  REQUIRE(config_set("probe_timeout_ms", "301").ok());         // who would wait longer is not told of those who did not
  CHECK(line_of(*world.look(), ".json").asked == "in a child");
  CHECK(line_of(*world.look(), ".json").asked == "from the cache");
  REQUIRE(config_set("probe_cache", "refresh").ok());
  CHECK(line_of(*world.look(), ".json").asked == "in a child");
  REQUIRE(config_set("probe_cache", "off").ok());
  CHECK(line_of(*world.look(), ".json").asked == "in a child");
  REQUIRE(config_set("probe_cache", "on").ok());
  REQUIRE(config_set("probe_timeout_ms", "10000").ok());
}

TEST_CASE("cache: a torn, foreign or nonsensical file is as if there were none", "[core][cache]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  const fs::path file = world.folder() / "cache/flhal/probe.json";
  CHECK(asked(world) == "in a child, then in process");
  std::ifstream in(file);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  std::string lying = good;
  lying.replace(lying.find("\"chip\":\"ram\""), 12, "\"chip\":\"R;M\"");
  for (const std::string& text : {std::string(), std::string("{"), good.substr(0, good.size() / 2), std::string("[]"), std::string("{\"format\": 99, \"answers\": {}}"),
                                  std::string("{\"format\": 1, \"answers\": []}"), lying}) {
    std::ofstream(file, std::ios::trunc) << text;
    INFO(text.substr(0, 100));
    CHECK(asked(world) == "in a child, then in process");
    CHECK(asked(world) == "from the cache, then in process");   // and it was written anew
  }
}

TEST_CASE("cache: one that others may write, or of another owner, or a link, is not trusted, and a line says so", "[core][cache]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  const fs::path folder = world.folder() / "cache/flhal", file = folder / "probe.json";
  CHECK(asked(world) == "in a child, then in process");
  chmod(file.c_str(), 0666);
  Discovery* found = world.look();
  CHECK(line_of(*found, "ram.json").asked == "in a child, then in process");
  CHECK(has_note(*found, "may be written by others (mode 666)"));
  CHECK(names_of(*found) == "ram");
  chmod(file.c_str(), 0600);
  chmod(folder.c_str(), 0777);
  CHECK(has_note(*world.look(), "may be written by others (mode 777)"));
  chmod(folder.c_str(), 0700);
  CHECK(asked(world) == "from the cache, then in process");
  fs::rename(file, folder / "elsewhere");
  fs::create_symlink("elsewhere", file);
  CHECK(has_note(*world.look(), "is not a regular file"));
  fs::remove(file);
  if (geteuid() == 0) {                                        // only root can make a file that is not its own
    fs::rename(folder / "elsewhere", file);
    REQUIRE(chown(file.c_str(), 12345, 12345) == 0);
    CHECK(has_note(*world.look(), "belongs to user 12345 and this process runs as user 0"));
  }
}

TEST_CASE("cache: a full disk or a folder that cannot be made costs speed and gives a line", "[core][cache]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  SECTION("the folder's place is taken by a file") {
    std::ofstream(world.folder() / "cache/flhal") << "x";
    Discovery* found = world.look();
    CHECK(has_note(*found, "is not a folder"));
    CHECK(names_of(*found) == "ram");
  }
  SECTION("the parent is a file") {
    setenv("XDG_CACHE_HOME", (world.plugin_folder() / "ram.json").c_str(), 1);
    Discovery* found = world.look();
    CHECK(has_note(*found, "cannot be made"));
    CHECK(names_of(*found) == "ram");
  }
#if !defined(__SANITIZE_THREAD__)   // ThreadSanitizer's own runtime needs a file in every child and would not start
  SECTION("writing fails") {                                   // a file size limit of 0 stands for the full disk
    rlimit before{}, none{};
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    Discovery* found = world.look();
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(has_note(*found, "cannot be written"));
    CHECK(names_of(*found) == "ram");
    CHECK(fs::is_empty(world.folder() / "cache/flhal"));       // nothing half-written stays
  }
#endif
}

TEST_CASE("cache: processes that write at the same time leave a good file", "[core][cache]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  world.add_plugin("mock");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        LoadReport report;
        ProbeCache cache((world.folder() / "cache/flhal").string());
        cache.load(report);
        PluginFile file;
        file.path = "/x/lib.so";
        PluginDescription description;
        description.id = "x";
        cache.put(file, {}, description);
        cache.save(report);
        if (!report.notes.empty()) std::terminate();
      }
    });
  for (std::thread& thread : threads) thread.join();
  LoadReport report;
  ProbeCache cache((world.folder() / "cache/flhal").string());
  cache.load(report);
  PluginFile file;
  file.path = "/x/lib.so";
  CHECK(cache.find(file, {}, 10000).known);
}
