// tests/opencl_plugin/world.h: the chips of the OpenCL plugin, opened; through core's public calls and slot by slot.
//
// What memory the chips make is FLHAL_OPENCL_MEMORY of this process (fine, coarse, buffer): ctest runs the binary with each.
#pragma once

#include <flhal/flhal.h>
#include <flhal/plugin.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/device.h"

namespace flhal::test {

#define REQUIRE_FINE(expression)                                   \
  do {                                                             \
    flhal_status required_ = (expression);                         \
    INFO(#expression << " answered " << required_ << ": " << last_error_text()); \
    REQUIRE(required_ == FLHAL_OK);                                \
  } while (0)

inline constexpr uint32_t kBasic = 2;
Device* chip(uint32_t index = 0);                  // opened. 0, 1: PoCL's devices with threads; kBasic: the one without
inline flhal_device* device_of(Device* d) { return handle_of(d); }
flhal_stream* new_stream(Device* device);          // lives until the process ends
inline uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }
bool has_addresses();                              // the chips make SVM, not buffers

flhal_addr allocate(flhal_stream* stream, uint64_t bytes);
void upload(flhal_stream* stream, flhal_addr to, const void* from, uint64_t bytes);
std::vector<uint8_t> download(flhal_stream* stream, flhal_addr from, uint64_t bytes);
std::vector<uint8_t> pattern_bytes(uint64_t n, uint32_t seed = 1);

// A program of one text, and a function of it.
flhal_module* build(Device* device, const std::string& text, const char* options = nullptr);
flhal_function* function(flhal_module* module, const char* name);
inline flhal_kernel_arg memory(flhal_addr a) { return {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, a}; }
template <class T>
flhal_kernel_arg value(const T& v) { return {FLHAL_KERNEL_ARG_VALUE, sizeof v, &v, 0}; }
flhal_status launch(flhal_stream* stream, flhal_function* f, uint64_t groups, uint32_t size, std::vector<flhal_kernel_arg> args);

// The plugin's own slots, called as core would.
struct Slots {
  Device* device;
  const flhal_plugin_table_v1& table;
  explicit Slots(Device* d) : device(d), table(d->plugin->table) {}
  flhal_p_device* handle() const { return device->handle; }
  flhal_p_slab_v1 slab(uint64_t bytes, uint32_t kind = FLHAL_MEM_DEVICE) const;
  flhal_p_stream* stream() const;
  flhal_p_event* event(uint32_t flags = 0) const;
  flhal_status copy(flhal_p_stream*, flhal_p_place dst, flhal_p_place src, uint64_t bytes, uint64_t rows = 1, uint64_t dst_pitch = 0,
                    uint64_t src_pitch = 0) const;
  std::vector<uint8_t> read(const flhal_p_slab_v1& slab) const;   // without a stream
};
inline flhal_p_place on(const flhal_p_slab_v1& slab, uint64_t offset = 0) { return {slab.memory, offset, nullptr}; }
inline flhal_p_place host(void* p) { return {nullptr, 0, p}; }
std::string left_text(flhal_status answer);        // what the plugin left with set_error for this answer

}  // namespace flhal::test
