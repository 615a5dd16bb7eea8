// tests/loading/hostile_test.cc: one bad plugin beside a good one, for every way to be bad.
//
// Goal, each time: the good plugin works, the report has a line with path, reason and remedy, the process ends by itself.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "loading/scan.h"

using namespace flhal::test;

namespace {

struct Case {
  const char* kind;
  const char* reason;     // part of the sentence
  const char* remedy;     // part of it
};

void prepare(TestWorld& world, const std::string& kind) {
  world.add_plugin("ram");
  world.add_hostile(kind);
  // Sanitizers must leave crashes to the system here, else a crash looks like an exit.
  world.set("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0:exitcode=23");
  world.set("TSAN_OPTIONS", "handle_segv=0:exitcode=23");
  world.set("FLHAL_PROBE_TIMEOUT_MS", *FLHAL_TEST_SANITIZE ? "8000" : "2500");
}

void check_refused(const Case& c) {
  TestWorld world;
  prepare(world, c.kind);
  Scan s = scan(world);
  INFO(c.kind << ": " << s.process.describe());
  CHECK(s.process.exit_code == 0);
  CHECK(s.works("ram"));
  CHECK(s.devices == std::vector<std::string>{"ram"});
  const ReportLine* line = s.plugin(std::string(c.kind) + ".json");
  REQUIRE(line != nullptr);
  CHECK(line->status == "refused");
  CHECK_THAT(line->reason, Catch::Contains(c.reason));
  CHECK(!line->remedy.empty());
  CHECK_THAT(line->remedy, Catch::Contains(c.remedy));
}

}  // namespace

TEST_CASE("LOAD-01 a file that is no plugin is reported with path, reason and remedy", "[loading][LOAD-01]") {
  auto c = GENERATE(values<Case>({
      {"text_file", "not an ELF", ""},
      {"truncated_file", "", ""},
      {"other_machine", "AArch64, and this process runs on", ""},
      {"missing_library", "does not exist", ""},
      {"missing_dependency", "libflhal_hostile_absent.so", "install the package that has"},
      {"undefined_symbol", "flhal_hostile_nobody_defines_this", "matching"},
      {"no_symbol", "does not export flhal_plugin_v1", "exactly that symbol"},
      {"symlink_loop", "link", ""},
      {"broken_manifest", "line 3, column 13", "correct it"},
  }));
  DYNAMIC_SECTION(c.kind) { check_refused(c); }
}

TEST_CASE("LOAD-01 a library that this user may not read says so", "[loading][LOAD-01]") {
  TestWorld world;
  prepare(world, "unreadable");
  if (geteuid() == 0) world.run_as(65534);   // root reads everything
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.works("ram"));
  const ReportLine* line = s.plugin("unreadable.json");
  REQUIRE(line != nullptr);
  CHECK(line->status == "refused");
  CHECK_THAT(line->reason, Catch::Contains("may not be read by user"));
  CHECK(!line->remedy.empty());
}

TEST_CASE("LOAD-01 with no plugin at all the sentence names the places searched and what to do", "[loading][LOAD-01]") {
  TestWorld world;
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.process.exit_code == 1);
  CHECK(s.devices.empty());
  CHECK_THAT(s.none, Catch::StartsWith("Device registration failed: plugin not found"));
  CHECK_THAT(s.none, Catch::Contains(world.plugin_folder().string()));
  CHECK_THAT(s.none, Catch::Contains("to do:"));
  REQUIRE(!s.places.empty());
  CHECK(s.places[0].path == world.plugin_folder().string());
}

TEST_CASE("LOAD-01 a wrong path in the environment is reported, and the others are searched", "[loading][LOAD-01]") {
  TestWorld world;
  world.add_plugin("ram");
  world.set("TORCH_FL_PLUGIN_PATH", (world.folder() / "no_such_folder").string() + ":" + world.plugin_folder().string());
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.works("ram"));
  CHECK_THAT(s.process.out, Catch::Contains("no_such_folder"));
}

TEST_CASE("LOAD-03 a plugin that misbehaves in init or in counting is left out alone", "[loading][LOAD-03]") {
  auto c = GENERATE(values<Case>({
      {"throws_in_init", "init threw a C++ exception: hostile: thrown in init", "maker"},
      {"throws_in_init_in_process", "init threw a C++ exception: hostile: thrown in init", "maker"},
      {"crash_in_init", "crashed in init (signal 11", "maker"},
      {"hang_in_init", "did not answer within", "FLHAL_PROBE_TIMEOUT_MS"},
      {"exit_in_init", "ended the process with exit(0) in init", "maker"},
      {"error_in_init", "hostile: the driver is not running; start it", "driver"},
      {"error_without_text", "-1000005 and left no text", ""},
      {"null_handle", "gave no handle", "maker"},
      {"throws_in_count", "device_count threw", "maker"},
      {"crash_in_count", "crashed in device_count", "maker"},
      {"hang_in_count", "in device_count", "FLHAL_PROBE_TIMEOUT_MS"},
      {"throws_in_info", "device_info threw", "maker"},
      {"crash_in_info", "crashed in device_info", "maker"},
      {"error_in_info", "hostile: the chip fell off the bus", ""},
      {"crash_in_entry", "crashed in flhal_plugin_v1", "maker"},
      {"throws_in_entry", "flhal_plugin_v1 threw", "maker"},
      {"entry_fails", "hostile: licence file missing", ""},
      {"crash_in_constructor", "crashed in opening the library", "maker"},
      {"exit_in_constructor", "ended the process with exit(0) in opening the library", "maker"},
  }));
  DYNAMIC_SECTION(c.kind) { check_refused(c); }
}

TEST_CASE("LOAD-03 nothing a plugin answers is trusted", "[loading][LOAD-03]") {
  auto c = GENERATE(values<Case>({
      {"count_minus_one", "4294967295 devices", "maker"},
      {"count_billion", "1000000000 devices", "maker"},
      {"null_names", "chip name is NULL", "[a-z0-9_]+"},
      {"bad_chip_name", "chip name is \"Chip A!", "[a-z0-9_]+"},
      {"long_chip_name", "chip name is", "64"},
      {"alignment_3", "alignment is 3", "power of two"},
      {"wild_dtypes", "1000000000 storage dtypes", ""},
      {"wild_dtype_value", "0xffffffff", "scalars.h"},
      {"missing_slot", "copy is NULL", "10 slots"},
      {"half_streams", "all or none", "stream_destroy"},
      {"null_table", "no table", "info->table"},
      {"truncated_table", "cut off: 48 bytes", "sizeof(flhal_plugin_table_v1)"},
      {"tiny_table", "8 bytes", "sizeof(flhal_plugin_table_v1)"},
      {"long_table_tail", "byte at offset 264 is not zero", "headers"},
      {"null_id", "no plugin id", ""},
      {"bad_id", "../no id", ""},
      {"other_id", "calls itself somebody_else", "manifest"},
      {"duplicate_id", "calls itself ram", "manifest"},
      {"other_major", "ABI 2.x and this flhal speaks 1.x", "install versions that meet"},
      {"newer_host_needed", "1.7 to 1.9 and this flhal with 1.0", "install versions that meet"},
      {"other_sanitizer", "was built with", "plain build"},
  }));
  if (*FLHAL_TEST_SANITIZE && std::string(c.kind) == "other_sanitizer") return;   // its texts are about a plain process
  DYNAMIC_SECTION(c.kind) { check_refused(c); }
}

TEST_CASE("LOAD-03 a slow plugin is waited for", "[loading][LOAD-03]") {
  TestWorld world;
  prepare(world, "slow_in_init");
  world.set("FLHAL_PROBE_TIMEOUT_MS", "20000");
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.works("ram"));
  CHECK(s.works("badchip"));
}

TEST_CASE("LOAD-03 a chip that cannot be opened or used leaves the others usable", "[loading][LOAD-03]") {
  auto c = GENERATE(values<Case>({
      {"throws_in_open", "hostile: thrown in device_open", ""},
      {"error_in_open", "hostile: the chip is in use by another program", ""},
      {"null_device", "gave no device", ""},
      {"error_in_alloc", "hostile: no memory controller", ""},
      {"throws_in_copy", "plugin throws_in_copy: copy: threw a C++ exception: hostile: thrown in copy; report it to the plugin's maker", ""},
      {"throws_in_alloc", "plugin throws_in_alloc: memory_alloc: threw a C++ exception of unknown type; report it", ""},
      {"throws_in_fill", "plugin throws_in_fill: fill: threw a C++ exception: hostile: thrown in fill; report it", ""},
  }));
  DYNAMIC_SECTION(c.kind) {
    TestWorld world;
    prepare(world, c.kind);
    Scan s = scan(world);
    INFO(s.process.describe());
    CHECK(s.process.exit_code == 0);
    CHECK(s.works("ram"));
    CHECK(!s.works("badchip"));
    CHECK_THAT(s.process.out, Catch::Contains("fails badchip: ") && Catch::Contains(c.reason));
  }
}

TEST_CASE("LOAD-03 odd answers with a harmless reading are read so", "[loading][LOAD-03]") {
  auto kind = GENERATE(as<std::string>{}, "uuid_zero", "uuid_clash", "no_memory", "slab_above_memory", "unknown_class", "writes_past_info");
  DYNAMIC_SECTION(kind) {
    TestWorld world;
    prepare(world, kind);
    Scan s = scan(world);
    INFO(s.process.describe());
    CHECK(s.process.exit_code == 0);
    CHECK(s.works("ram"));
  }
}

TEST_CASE("LOAD-03 one good plugin works among all the bad ones", "[loading][LOAD-03]") {
  TestWorld world;
  prepare(world, "crash_in_init");
  for (const char* kind : {"throws_in_init", "exit_in_init", "count_billion", "null_names", "truncated_table", "no_symbol", "text_file",
                           "broken_manifest", "missing_dependency", "symlink_loop", "other_machine", "alignment_3", "crash_in_constructor"})
    world.add_hostile(kind);
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.process.exit_code == 0);
  CHECK(s.devices == std::vector<std::string>{"ram"});
  CHECK(s.works("ram"));
  size_t refused = 0;
  for (const ReportLine& line : s.plugins) refused += line.status == "refused" && !line.reason.empty() && !line.path.empty();
  CHECK(refused == 14);
}
