// tests/layers/world.cc: ram and mock, with validate on before they are loaded.
#include <cstdlib>

#include "layers/layers_world.h"
#include "memory/chips.h"

namespace flhal::test {

static const int entered = [] {
  TestWorld::enter();
  return setenv("FLHAL_LAYERS", "validate", 1);
}();

Device* chip(const char* name) {
  for (Device* d : devices()) {
    if (d->name != name) continue;
    INFO(last_error_text());
    REQUIRE(d->open().code() == FLHAL_OK);
    return d;
  }
  FAIL("there is no chip " << name);
  return nullptr;
}

}  // namespace flhal::test
