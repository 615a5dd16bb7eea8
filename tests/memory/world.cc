// tests/memory/world.cc: ram and the mock chips for the tests here that want real plugins.
#include "memory/chips.h"

namespace flhal::test {

static const int entered = TestWorld::enter("chips=ab,memory=64MiB");

Device* chip(const char* name) {
  (void)entered;
  for (Device* device : devices()) {
    if (device->name != name) continue;
    Status opened = device->open();
    INFO(last_error_text());
    REQUIRE(opened.code() == FLHAL_OK);
    return device;
  }
  FAIL("no device " << name << "; the plugins ram and mock must be built");
  return nullptr;
}

}  // namespace flhal::test
