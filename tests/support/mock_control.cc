// tests/support/mock_control.cc
#include "support/mock_control.h"

#include <dlfcn.h>
#include <flhal/plugin.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace flhal::test {

const flhal_mock_control_v1& mock_control() {
  static const flhal_mock_control_v1* const table = [] {
    const char* path = FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_mock.so";
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto entry = library ? reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1")) : nullptr;
    flhal_plugin_info_v1 info{};
    info.struct_size = sizeof info;
    info.struct_type = FLHAL_ST_PLUGIN_INFO;
    if (entry == nullptr || entry(nullptr, &info) != FLHAL_OK) {
      fprintf(stderr, "mock_control: %s does not load (%s); build the target flhal_plugin_mock\n", path, dlerror());
      abort();
    }
    return static_cast<const flhal_mock_control_v1*>(info.optional_table(FLHAL_MOCK_CONTROL_NAME, FLHAL_MOCK_CONTROL_VERSION));
  }();
  return *table;
}

MockScript::MockScript(const char* text) {
  if (mock_control().script(text) != FLHAL_OK) throw std::invalid_argument(std::string("mock script does not parse: ") + text);
}

}  // namespace flhal::test
