// tests/bounce/world.cc: ram, the mock chips, and an OpenCL chip whose memory the host does not see.
#include <cstdlib>

#include "memory/chips.h"

namespace flhal::test {

static const int entered = [] {
  TestWorld::enter("chips=ab,memory=64MiB");
  const std::string plugins = std::getenv("FLHAL_PLUGIN_FILES");
  setenv("FLHAL_PLUGIN_FILES", (plugins + ":" FLHAL_TEST_PLUGIN_DIR "/opencl.json").c_str(), 1);
  setenv("FLHAL_OPENCL_MEMORY", "buffer", 1);
  setenv("FLHAL_PROBE_TIMEOUT_MS", "120000", 1);   // PoCL brings a compiler, which is slow to start on a busy machine
  setenv("POCL_DEVICES", "pthread", 1);
  return 0;
}();

Device* chip(const char* name) {
  (void)entered;
  for (Device* device : devices()) {
    if (device->name != name) continue;
    REQUIRE_OK(device->open());
    return device;
  }
  FAIL("no device " << name << "; the plugins ram, mock and opencl must be built, and PoCL installed");
  return nullptr;
}

}  // namespace flhal::test

TEST_CASE("bounce: this world has an OpenCL chip that the host does not see", "[bounce]") {
  CHECK_FALSE(flhal::test::chip("opencl")->has(FLHAL_CAP_HOST_VISIBLE));
}
