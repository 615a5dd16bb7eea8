// tests/core/device_test.cc: opening, vanishing, losing, resetting, forking, shutting down.
#include <signal.h>

#include "core/discovery_world.h"
#include "core/stream.h"

using namespace flhal;
using namespace flhal::test;

namespace {

std::string run(TestWorld& world, std::vector<std::string> words) {
  words.insert(words.begin(), helper("core_one"));
  ProcessResult result = world.run(words);
  INFO(result.describe());
  CHECK(result.ok());
  return result.out;
}

}  // namespace

TEST_CASE("device: opening is idempotent and gives a default stream and a pool", "[core][device]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  Discovery* found = world.look();
  Device& device = *found->devices.at(0);
  CHECK(device.state == FLHAL_DEVICE_STATE_CLOSED);
  REQUIRE(device.open().ok());
  REQUIRE(device.open().ok());
  CHECK(device.state == FLHAL_DEVICE_STATE_OPEN);
  CHECK(device.default_stream != nullptr);
  CHECK(device.pool != nullptr);
  CHECK(device.default_stream->is_default);
  CHECK(device.stores(FLHAL_F64));                            // no list means all
  REQUIRE(device.close().ok());
  CHECK(device.state == FLHAL_DEVICE_STATE_CLOSED);
  REQUIRE(device.open().ok());
}

TEST_CASE("device: one that was counted and cannot be opened keeps its index and is LOST, with the maker's sentence", "[core][device][LOAD-03]") {
  struct {
    const char* kind, *sentence;
  } rows[] = {{"throws_in_open", "device_open threw a C++ exception: hostile: thrown in device_open"},
              {"error_in_open", "hostile: the chip is in use by another program"},
              {"null_device", "device_open answered FLHAL_OK and gave no device"}};
  for (const auto& row : rows) {
    DiscoveryWorld world;
    world.add_hostile(row.kind);
    world.add_plugin("mock");
    Discovery* found = world.look();
    REQUIRE(found->devices.size() >= 2);
    Device& device = *found->devices[0];
    INFO(row.kind);
    CHECK(device.open().code() == FLHAL_E_DEVICE_LOST);
    INFO(last_error_text());
    CHECK(has(last_error_text(), row.sentence));
    CHECK(device.lost());
    CHECK(device.index == 0);
    CHECK(device.open().code() == FLHAL_E_DEVICE_LOST);       // sticky
    CHECK(has(last_error_text(), "device badchip is lost: "));
    CHECK(device.reset().code() == FLHAL_E_DEVICE_LOST);      // tries again, and says why not
    CHECK(found->devices[1]->open().ok());                    // the others work on
  }
}

TEST_CASE("device: a library that is gone when the device is opened is LOST, not a crash", "[core][device]") {
  DiscoveryWorld world;
  world.add_hostile("uuid_zero");
  Discovery* found = world.look();
  std::filesystem::remove(world.plugin_folder() / "libflhal_plugin_uuid_zero.so");
  CHECK(found->devices.at(0)->open().code() == FLHAL_E_DEVICE_LOST);
  CHECK(has(last_error_text(), "does not exist"));
}

TEST_CASE("device: lost is sticky until reset, and every loss begins a new generation", "[core][device]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  Discovery* found = world.look();
  Device& device = *found->devices.at(0);
  REQUIRE(device.open().ok());
  const uint32_t generation = device.generation;
  device.mark_lost("the test says so");
  CHECK(device.lost());
  CHECK(device.generation > generation);
  CHECK_FALSE(device.default_stream->usable());
  device.mark_lost("again");                                  // the first reason stays
  CHECK(device.open().code() == FLHAL_E_DEVICE_LOST);
  CHECK(has(last_error_text(), "the test says so"));
  REQUIRE(device.reset().ok());
  CHECK(device.state == FLHAL_DEVICE_STATE_OPEN);
  CHECK(device.default_stream->usable());
}

TEST_CASE("device: a handle that is none is refused by every check", "[core][device]") {
  uint64_t garbage[16] = {};
  CHECK(check_device(nullptr, "flhal_device_open").code() == FLHAL_E_INVALID);
  CHECK(check_device(reinterpret_cast<flhal_device*>(garbage), "flhal_device_open").code() == FLHAL_E_INVALID);
  CHECK(has(last_error_text(), "is not a device; give one that flhal_device_at returned"));
}

TEST_CASE("device: a forked child frees silently and is refused everything else with one sentence", "[core][fork]") {
  TestWorld world;
  world.add_plugin("ram");
  const std::string out = run(world, {"count", "fork"});
  INFO(out);
  CHECK(has(out, "alloc 0 \n"));
  CHECK(has(out, "child free 0 \n"));
  CHECK(has(out, "child release 0 \n"));
  CHECK(has(out, "child count 1\n"));                         // a number harms nobody, and autograd asks for it
  for (const char* what : {"open", "info", "find", "alloc", "synchronize", "shutdown"}) {
    INFO(what);
    CHECK(has(out, fmt::format("child {} -11 ", what)));
  }
  CHECK(has(out, "\nat none flhal_device_at: process "));
  CHECK(has(out, "was forked from a process that already used flhal devices"));
  CHECK(has(out, "start the child with the spawn or forkserver method"));
  CHECK(has(out, "child ended 0\nfree 0 \n"));                // the parent is unharmed
}

TEST_CASE("device: after shutdown everything is refused with one sentence", "[core][device]") {
  TestWorld world;
  world.add_plugin("ram");
  const std::string out = run(world, {"open", "shutdown", "init", "set", "log_level", "error"});
  INFO(out);
  CHECK(has(out, "shutdown 0 \nat none flhal_device_at: flhal_shutdown was called, and nothing works after it; start a new process\n"));
  CHECK(has(out, "open -1 flhal_device_open: flhal_shutdown was called"));
  CHECK(has(out, "again -1 "));
  CHECK(has(out, "init -1 "));
  CHECK(has(out, "set -1 "));
}

TEST_CASE("discovery: a scan leaves the program's SIGCHLD action as it was, and tells it of children meanwhile", "[core][discovery]") {
  static volatile sig_atomic_t heard = 0;
  struct sigaction mine{}, before{}, after{};
  mine.sa_handler = [](int) { heard = heard + 1; };
  mine.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &mine, &before);
  {
    DiscoveryWorld world;
    world.add_plugin("ram");
    (void)world.look();
  }
  sigaction(SIGCHLD, &before, &after);
  CHECK(after.sa_handler == mine.sa_handler);
  CHECK(heard > 0);
}

TEST_CASE("LOAD-06 discovery: one resolver for the C API and flhal-info, under every setting", "[core][discovery][LOAD-06]") {
  struct {
    const char* name, *value;
  } rows[] = {{"", ""}, {"TORCH_FL_VISIBLE_DEVICES", "chip_b,ram"}, {"FLHAL_VISIBLE_DEVICES", "chip_a"}, {"TORCH_FL_VISIBLE_DEVICES", "chip_z"},
              {"TORCH_FL_VISIBLE_DEVICES", ""}, {"TORCH_FL_VISIBLE_DEVICES", "none"}, {"FLHAL_PLUGIN_FILES", "ram.json"}};
  for (const auto& row : rows) {
    TestWorld world;
    world.add_plugin("ram");
    world.add_plugin("mock");
    if (*row.name) world.set(row.name, row.value == std::string("ram.json") ? (world.plugin_folder() / "ram.json").string() : row.value);
    INFO(row.name << "=" << row.value);
    std::string names = run(world, {"names"}), from_info;
    ProcessResult info = world.run({FLHAL_TEST_INFO});
    INFO(info.describe());
    size_t n = 0;
    for (size_t at = info.out.find("\n["); at != std::string::npos; at = info.out.find("\n[", at + 1), ++n)
      from_info += "device " + std::to_string(n) + " " + info.out.substr(info.out.find("] ", at) + 2, info.out.find(": ", at) - info.out.find("] ", at) - 2) + "\n";
    CHECK(names == from_info);
    const std::string value = row.value;
    if (value == "chip_b,ram") CHECK(names == "device 0 chip_b\ndevice 1 ram\n");
    if (value == "chip_z") {
      CHECK(names.empty());
      CHECK(info.exit_code == 1);
      CHECK(has(run(world, {"count"}), "count 0 visible_devices='chip_z': there is no device 'chip_z'; the devices are "));
      CHECK(has(info.out, "there is no device 'chip_z'"));
    }
    if (value == "ram.json") CHECK(names == "device 0 ram\n");
  }
}

TEST_CASE("discovery: no plugin, or a wrong path: the sentence begins as promised and names what was searched", "[core][discovery][LOAD-01]") {
  TestWorld world;
  world.set("FLHAL_PLUGIN_FILES", (world.folder() / "nothing").string());
  const std::string out = run(world, {"count", "find", "chip_a", "open"});
  INFO(out);
  CHECK(has(out, "count 0 Device registration failed: plugin not found\nsearched:\n  " + (world.folder() / "nothing").string() + " (FLHAL_PLUGIN_FILES): does not exist"));
  CHECK(has(out, "to do: install a plugin"));
  CHECK(has(out, "find ! flhal_device_find: 'chip_a': Device registration failed: plugin not found"));
}

TEST_CASE("discovery: the setting device and pool sizes that name no device are errors in the report", "[core][discovery]") {
  TestWorld world;
  world.add_plugin("ram");
  world.set("TORCH_FL_DEVICE", "rom");
  const std::string out = run(world, {"set", "memory_pool_size@rim", "1GiB", "count", "load"});
  INFO(out);
  CHECK(has(out, "TORCH_FL_DEVICE: there is no device 'rom'"));
  CHECK(has(out, "memory_pool_size@rim: there is no device 'rim'"));
  CHECK(has(out, "the devices are ram"));
}
