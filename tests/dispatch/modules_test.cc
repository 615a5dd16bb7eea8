// tests/dispatch/modules_test.cc: an application's own kernels: loading, launching, lifetimes, refusals.
#include <catch2/catch.hpp>
#include <flhal/plugin.h>

#include "call.h"
#include "support/mock_control.h"

using namespace flhal::test;
using Catch::Contains;

namespace {

// out[i] = in[i] * factor for `count` elements from `first`; 4 elements a group.
void scale(const void* const* argv, uint64_t first, uint64_t count) {
  auto* out = static_cast<float*>(const_cast<void*>(argv[0]));
  auto* in = static_cast<const float*>(argv[1]);
  float factor = *static_cast<const float*>(argv[2]);
  for (uint64_t g = first; g < first + count; ++g)
    for (uint64_t i = 4 * g; i < 4 * g + 4; ++i) out[i] = in[i] * factor;
}
const flhal_host_function kFunctions[] = {{"scale", scale}};
const flhal_host_module kModule{sizeof(flhal_host_module), 1, kFunctions};

flhal_module* load(const char* device) {
  flhal_module* module = nullptr;
  REQUIRE(flhal_module_load(device_named(device), FLHAL_DIALECT_HOST, &kModule, sizeof kModule, nullptr, &module) ==
          FLHAL_OK);
  return module;
}
const uint64_t kGroups[3] = {2, 1, 1};
const uint32_t kSize[3] = {1, 1, 1};

}  // namespace

TEST_CASE("launch: an application's kernel computes", "[dispatch][launch]") {
  flhal_stream* s = stream_of("chip_a");
  flhal_module* module = load("chip_a");
  flhal_function* f = nullptr;
  REQUIRE(flhal_function_get(module, "scale", &f) == FLHAL_OK);
  Tensor in = floats(s, {8}), out = empty(s, {8});
  float factor = 3;
  flhal_kernel_arg args[3] = {{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, out.address},
                              {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, in.address},
                              {FLHAL_KERNEL_ARG_VALUE, sizeof factor, &factor, 0}};
  REQUIRE(flhal_launch(s, f, kGroups, kSize, args, 3) == FLHAL_OK);
  factor = 1000;   // the value was taken during the call
  CHECK(values(out) == std::vector<float>{3, 6, 9, 12, 15, 18, 21, 24});

  CHECK(flhal_function_get(module, "nothing", &f) == FLHAL_E_NOT_FOUND);
  CHECK_THAT(last_text(), Contains("no function \"nothing\""));
  REQUIRE(flhal_module_release(module) == FLHAL_OK);
}

TEST_CASE("launch: a module released with launches in flight is unloaded when they have ended", "[dispatch][at_once][launch]") {
  flhal_stream* s = stream_of("chip_a");
  uint64_t before = mock_counts().live_modules;
  Tensor in = floats(s, {8}), out = empty(s, {8});
  REQUIRE(flhal_stream_synchronize(s) == FLHAL_OK);
  {
    MockHold hold;
    flhal_module* module = load("chip_a");
    flhal_function* f = nullptr;
    REQUIRE(flhal_function_get(module, "scale", &f) == FLHAL_OK);
    float factor = 2;
    flhal_kernel_arg args[3] = {{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, out.address},
                                {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, in.address},
                                {FLHAL_KERNEL_ARG_VALUE, sizeof factor, &factor, 0}};
    REQUIRE(flhal_launch(s, f, kGroups, kSize, args, 3) == FLHAL_OK);
    REQUIRE(flhal_module_release(module) == FLHAL_OK);
    CHECK(mock_counts().live_modules == before + 1);
  }
  CHECK(values(out) == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
  REQUIRE(flhal_stream_synchronize(s) == FLHAL_OK);
  CHECK(mock_counts().live_modules == before);
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("launch: refusals name what is wrong", "[dispatch][launch]") {
  flhal_stream *a = stream_of("chip_a"), *b = stream_of("chip_b");
  flhal_module* module = load("chip_a");
  flhal_function* f = nullptr;
  REQUIRE(flhal_function_get(module, "scale", &f) == FLHAL_OK);
  CHECK(flhal_launch(b, f, kGroups, kSize, nullptr, 0) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("chip_a") && Contains("chip_b"));
  const uint64_t none[3] = {2, 0, 1};
  CHECK(flhal_launch(a, f, none, kSize, nullptr, 0) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("none may be 0"));
  Tensor elsewhere = floats(b, {8});
  flhal_kernel_arg wrong{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, elsewhere.address};
  CHECK(flhal_launch(a, f, kGroups, kSize, &wrong, 1) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("argument 0 lies on device") && Contains("chip_b"));
  flhal_kernel_arg no_value{FLHAL_KERNEL_ARG_VALUE, 4, nullptr, 0};
  CHECK(flhal_launch(a, f, kGroups, kSize, &no_value, 1) == FLHAL_E_INVALID);
  flhal_module* other = nullptr;
  CHECK(flhal_module_load(device_named("chip_a"), "ptx", &kModule, 1, nullptr, &other) == FLHAL_E_UNSUPPORTED);
  CHECK_THAT(last_text(), Contains("its dialects: flhal-host-1"));
  REQUIRE(flhal_module_release(module) == FLHAL_OK);
}
