// tests/loading/names_test.cc: symbols that clash (LOAD-04), and one resolver for every entry (LOAD-06).
#include <catch2/catch.hpp>
#include <algorithm>

#include "loading/scan.h"

using namespace flhal::test;

TEST_CASE("LOAD-04 two plugins with the same internal names each run their own code", "[loading][LOAD-04]") {
  TestWorld world;
  world.add_hostile("clashing_symbols_1");
  world.add_hostile("clashing_symbols_2");
  Scan s = scan(world);
  INFO(s.process.describe());
  REQUIRE(s.lines.size() == 2);
  CHECK_THAT(s.lines[0], Catch::Contains("clash_one product=body one"));
  CHECK_THAT(s.lines[1], Catch::Contains("clash_two product=body two"));
  CHECK(s.works("clash_one"));
  CHECK(s.works("clash_two"));
}

TEST_CASE("LOAD-04 the same library in two folders is one plugin, and the path really loaded is shown", "[loading][LOAD-04]") {
  TestWorld world;
  world.add_plugin("ram");
  std::filesystem::path other = world.folder() / "other";
  std::filesystem::copy(world.plugin_folder(), other);
  world.set("TORCH_FL_PLUGIN_PATH", other.string() + ":" + world.plugin_folder().string());
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.devices == std::vector<std::string>{"ram"});
  const ReportLine* first = s.plugin("/other/ram.json");
  const ReportLine* second = s.plugin("/flhal_plugins.d/ram.json");
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(first->status == "loaded");
  CHECK(second->status == "duplicate");
  CHECK_THAT(second->reason, Catch::Contains("/other/ram.json"));
  CHECK_THAT(s.process.out, Catch::Contains("\"loaded_path\":\t\"" + (other / "libflhal_plugin_ram.so").string()));
}

TEST_CASE("LOAD-04 a plugin exports flhal_plugin_v1 and nothing else, and needs nothing of libflhal", "[loading][LOAD-04]") {
  for (const char* id : {"ram", "mock"}) {
    TestWorld world;
    std::string library = std::string(FLHAL_TEST_PLUGIN_DIR) + "/libflhal_plugin_" + id + ".so";
    ProcessResult nm = world.run({"nm", "-D", "--defined-only", "--format=just-symbols", library});
    INFO(nm.describe());
    REQUIRE(nm.ok());
    if (!*FLHAL_TEST_SANITIZE) CHECK(nm.out == "flhal_plugin_v1\n");
    ProcessResult elf = world.run({"readelf", "-d", library});
    CHECK(elf.out.find("libflhal.so") == std::string::npos);
  }
}

TEST_CASE("LOAD-06 the order of devices does not depend on the order of folders or files", "[loading][LOAD-06]") {
  std::vector<std::string> expected = {"chip_a", "chip_b", "ram"};
  auto order = GENERATE(as<std::vector<std::string>>{}, std::vector<std::string>{"ram", "mock"}, std::vector<std::string>{"mock", "ram"});
  TestWorld world;
  std::string path;
  for (const std::string& id : order) {
    world.add_plugin(id);
    path += (path.empty() ? "" : ":") + (world.plugin_folder() / ("libflhal_plugin_" + id + ".so")).string();
  }
  Scan by_folder = scan(world);
  INFO(by_folder.process.describe());
  CHECK(by_folder.devices == expected);
  world.set("FLHAL_PLUGIN_FILES", path);
  Scan by_files = scan(world);
  INFO(by_files.process.describe());
  CHECK(by_files.devices == expected);
}

TEST_CASE("LOAD-06 a selection means the same for every entry", "[loading][LOAD-06]") {
  TestWorld world;
  world.add_plugin("ram");
  world.add_plugin("mock");
  world.set("TORCH_FL_VISIBLE_DEVICES", "ram,chip_b");
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.devices == std::vector<std::string>{"ram", "chip_b"});
  CHECK(world.run({helper("scan_one"), "--find", "chip_b"}).out == "index 1\n");
  ProcessResult info = world.run({std::string(FLHAL_TEST_BINARY_DIR) + "/" + FLHAL_INFO_PATH});
  INFO(info.describe());
  CHECK_THAT(info.out, Catch::StartsWith("Detected devices:\n[0] ram: 4GB"));
  CHECK_THAT(info.out, Catch::Contains("[1] chip_b: 24GB, compute_capability=8.0"));
  CHECK(info.out.find("chip_a") == std::string::npos);

  SECTION("FLHAL_ wins over TORCH_FL_") {
    world.set("FLHAL_VISIBLE_DEVICES", "chip_a");
    CHECK(scan(world).devices == std::vector<std::string>{"chip_a"});
  }
  SECTION("an empty value is no value") {
    world.set("TORCH_FL_VISIBLE_DEVICES", "");
    CHECK(scan(world).devices.size() == 3);
  }
  SECTION("a name that does not exist lists the valid ones") {
    world.set("TORCH_FL_VISIBLE_DEVICES", "chip_z");
    Scan wrong = scan(world);
    CHECK(wrong.devices.empty());
    CHECK_THAT(wrong.none, Catch::Contains("there is no device 'chip_z'; the devices are chip_a, chip_b, ram"));
    ProcessResult found = world.run({helper("scan_one"), "--find", "ram"});
    CHECK(found.exit_code == 1);
  }
}

TEST_CASE("LOAD-06 FLHAL_PLUGIN_FILES replaces the search, FLHAL_ADD_PLUGIN_FILES adds to it", "[loading][LOAD-06]") {
  TestWorld world;
  std::string ram = world.add_plugin("ram").string();
  TestWorld other;
  std::string mock = other.add_plugin("mock").string();
  world.set("TORCH_FL_PLUGIN_PATH", world.plugin_folder().string());
  world.set("FLHAL_ADD_PLUGIN_FILES", mock);
  CHECK(scan(world).devices == std::vector<std::string>{"chip_a", "chip_b", "ram"});
  world.set("FLHAL_PLUGIN_FILES", mock);
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.devices == std::vector<std::string>{"chip_a", "chip_b"});

  SECTION("both under the TORCH_FL_ names too, where FLHAL_ wins") {
    world.unset("FLHAL_ADD_PLUGIN_FILES");
    world.set("TORCH_FL_PLUGIN_FILES", ram);
    CHECK(scan(world).devices == std::vector<std::string>{"chip_a", "chip_b"});
    world.unset("FLHAL_PLUGIN_FILES");
    CHECK(scan(world).devices == std::vector<std::string>{"ram"});
    world.unset("TORCH_FL_PLUGIN_FILES");
    world.set("TORCH_FL_ADD_PLUGIN_FILES", mock);
    CHECK(scan(world).devices == std::vector<std::string>{"chip_a", "chip_b", "ram"});
  }
}

TEST_CASE("loading: the mock's script reaches it, and what it then lacks is emulated", "[loading][mock]") {
  auto script = GENERATE(as<std::string>{}, "no_streams=1", "no_kernels=1", "no_ops=1", "no_host_access=1", "addresses=foreign",
                         "addresses=none", "no_timing=1", "reorder=3,delay_ms=3", "no_streams=1,no_kernels=1,no_ops=1,no_host_access=1,addresses=none");
  DYNAMIC_SECTION(script) {
    TestWorld world;
    world.add_plugin("mock");
    world.mock(script);
    Scan s = scan(world);
    INFO(s.process.describe());
    CHECK(s.works("chip_a"));
    CHECK(s.works("chip_b"));
    REQUIRE(s.lines.size() == 2);
    bool no_streams = script.find("no_streams") != std::string::npos;
    CHECK_THAT(s.lines[0], Catch::Contains(no_streams ? "streams=0" : "streams=1"));
  }
}

TEST_CASE("loading: a mock script that does not parse is a line in the report", "[loading][mock]") {
  TestWorld world;
  world.add_plugin("ram");
  world.add_plugin("mock");
  world.mock("colour=red");
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.works("ram"));
  const ReportLine* line = s.plugin("mock.json");
  REQUIRE(line != nullptr);
  CHECK(line->status == "refused");
  CHECK_THAT(line->reason, Catch::Contains("has no key 'colour'"));
}

TEST_CASE("loading: half of the stream slots is refused", "[loading][mock]") {
  TestWorld world;
  world.add_plugin("ram");
  world.add_plugin("mock");
  world.mock("no_events=1");
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.works("ram"));
  CHECK(s.plugin("mock.json")->status == "refused");
}
