// tests/install/install_test.cc: what a C integrator and a chip maker do, from an installed package in an empty folder.
#include <catch2/catch.hpp>

#include "support/test_world.h"

using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

// Installs the components of a runtime with all plugins that were built, and the SDK, into <world>/prefix.
fs::path install(TestWorld& world) {
  fs::path prefix = world.folder() / "prefix";
  std::vector<std::string> components = {"runtime", "flhal_sdk"};
  for (const char* id : {"ram", "mock", "host"})
    if (fs::exists(fs::path(FLHAL_TEST_PLUGIN_DIR) / ("libflhal_plugin_" + std::string(id) + ".so")))
      components.push_back("flhal_plugin_" + std::string(id));
  for (const std::string& component : components) {
    ProcessResult r = world.run({"cmake", "--install", FLHAL_TEST_BINARY_DIR, "--prefix", prefix.string(), "--component", component});
    INFO(r.describe());
    REQUIRE(r.ok());
  }
  return prefix;
}

void build(TestWorld& world, const fs::path& source, const fs::path& binary, const fs::path& prefix) {
  ProcessResult r = world.run({"cmake", "-S", source.string(), "-B", binary.string(), "-DCMAKE_PREFIX_PATH=" + prefix.string(),
                               "-DCMAKE_C_FLAGS=" FLHAL_TEST_C_FLAGS});
  INFO(r.describe());
  REQUIRE(r.ok());
  r = world.run({"cmake", "--build", binary.string()});
  INFO(r.describe());
  REQUIRE(r.ok());
}

}  // namespace

TEST_CASE("install: the C examples build from an empty prefix and run on every chip", "[install]") {
  TestWorld world;
  fs::path prefix = install(world), built = world.folder() / "example";
  build(world, fs::path(FLHAL_TEST_SOURCE_DIR) / "examples" / "c", built, prefix);
  world.set("TORCH_FL_PLUGIN_PATH", "");   // the installed plugins are found without any variable
  ProcessResult r = world.run({(built / "matmul_softmax").string()});
  INFO(r.describe());
  REQUIRE(r.ok());
  std::vector<std::string> chips = {"chip_a", "chip_b", "ram"};
  if (fs::exists(prefix / "lib" / "flhal_plugins.d" / "libflhal_plugin_host.so")) chips.push_back("host");
  for (const std::string& chip : chips) CHECK_THAT(r.out, Catch::Contains(" " + chip + ": 0.3543 0.6457 / 0.1824 0.8176\n"));
  for (const char* name : {"streams", "two_chips", "own_kernel", "shared_object", "vendor_op"}) {
    r = world.run({(built / name).string()});
    INFO(r.describe());
    CHECK(r.ok());
  }
}

TEST_CASE("install: a C program and a plugin build by pkg-config, from a prefix that was moved", "[install][pkg-config]") {
  TestWorld world;
  fs::path moved = world.folder() / "elsewhere";
  fs::rename(install(world), moved);
  world.set("PKG_CONFIG_PATH", (moved / "lib" / "pkgconfig").string());
  auto shell = [&](const std::string& line) {
    ProcessResult r = world.run({"sh", "-ec", "cd " + world.folder().string() + "; " + line});
    INFO(r.describe());
    REQUIRE(r.ok());
    return r.out;
  };
  const std::string source = FLHAL_TEST_SOURCE_DIR "/examples/c/matmul_softmax.c", sdk = (moved / "share" / "flhal-sdk" / "template").string();
  shell("cc -std=c99 " FLHAL_TEST_C_FLAGS " -o program " + source + " $(pkg-config --cflags --libs flhal)");
  world.set("TORCH_FL_PLUGIN_PATH", "");
  CHECK_THAT(shell("./program"), Catch::Contains(" chip_a: 0.3543 0.6457 / 0.1824 0.8176\n"));
  shell("cc -std=c99 " FLHAL_TEST_C_FLAGS " -shared -fPIC -fvisibility=hidden -DFLHAL_PLUGIN_ID='\"by_hand\"' -DFLHAL_PLUGIN_VERSION='\"1\"' -o libby_hand.so " +
        sdk + "/plugin.c " + sdk + "/device.c " + sdk + "/memory.c $(pkg-config --cflags flhal-sdk)");
  world.set("FLHAL_PLUGIN_FILES", (world.folder() / "libby_hand.so").string());
  CHECK_THAT(shell((moved / "bin" / "flhal-info").string()), Catch::Contains("(plugin by_hand 1)"));
}

TEST_CASE("install: the template builds from an installed SDK and its chip works", "[install][sdk]") {
  TestWorld world;
  fs::path prefix = install(world), copy = world.folder() / "mychip", built = world.folder() / "mychip-build";
  fs::copy(prefix / "share" / "flhal-sdk" / "template", copy, fs::copy_options::recursive);
  build(world, copy, built, prefix);
  world.set("TORCH_FL_PLUGIN_PATH", built.string());
  ProcessResult r = world.run({(prefix / "bin" / "flhal-info").string()});
  INFO(r.describe());
  CHECK_THAT(r.out, Catch::Contains("ram: 4GB, compute_capability=1.0, Example RAM chip (plugin ram 0.1.0)\n    can: memory and copies; core computes on the host"));
  CHECK_THAT(r.out, Catch::Contains("Plugins:\nram 0.1.0: ") && Catch::Contains("libram.so (ABI 1.0, devices: 1)"));
  ProcessResult scan = world.run({helper("scan_one")});
  INFO(scan.describe());
  CHECK_THAT(scan.out, Catch::Contains("works ram"));
  CHECK_THAT(scan.out, Catch::Contains((built / "libram.so").string()));
}

TEST_CASE("install: flhal_add_plugin refuses what it cannot build, in words", "[install][sdk]") {
  TestWorld world;
  fs::path prefix = install(world), source = world.folder() / "bad";
  fs::create_directories(source);
  auto attempt = [&](const std::string& line) {
    world.write("../bad/CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(bad LANGUAGES C)\nfind_package(flhal-sdk REQUIRED)\n" + line + "\n");
    return world.run({"cmake", "-S", source.string(), "-B", (source / "b").string(), "-DCMAKE_PREFIX_PATH=" + prefix.string()}).err;
  };
  CHECK_THAT(attempt("flhal_add_plugin(chip)"), Catch::Contains("SOURCES is empty"));
  CHECK_THAT(attempt("flhal_add_plugin(chip SOURCES a.c PROFILE fast)"), Catch::Contains("valid are sync, kernel"));
  CHECK_THAT(attempt("flhal_add_plugin(\"my chip\" SOURCES a.c)"), Catch::Contains("an id has letters"));
}
