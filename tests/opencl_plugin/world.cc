// tests/opencl_plugin/world.cc: see world.h.
#include "world.h"

#include <cstdlib>

#include "core/host_services.h"
#include "core/plugin_table.h"

namespace flhal::test {
namespace {

// Before main: the device list freezes at the first count. PoCL shows what it is told to: two devices with threads, equal but
// for their place, and one that works in the caller's thread.
const int entered = [] {
  std::string memory = std::getenv("FLHAL_OPENCL_MEMORY") ? std::getenv("FLHAL_OPENCL_MEMORY") : "";
  setenv("FLHAL_PLUGIN_FILES", FLHAL_TEST_PLUGIN_DIR "/opencl.json", 1);
  setenv("POCL_DEVICES", "pthread pthread basic", 1);
  setenv("FLHAL_PROBE_CACHE", "off", 1);
  if (!memory.empty()) setenv("FLHAL_OPENCL_MEMORY", memory.c_str(), 1);
  return 0;
}();

}  // namespace

Device* chip(uint32_t index) {
  (void)entered;
  std::string report;
  flhal_report("load", [](void* to, const char* text, uint64_t n) { static_cast<std::string*>(to)->append(text, n); }, &report);
  INFO("load report: " << report);
  REQUIRE(devices().size() == 3);
  uint32_t threaded = 0;
  for (Device* device : devices()) {
    bool threads = std::string(device->info.product).find("pthread") != std::string::npos;
    if (index == kBasic ? threads : !threads || threaded++ != index) continue;
    REQUIRE_FINE(flhal_device_open(device_of(device)));
    return device;
  }
  FAIL("PoCL shows other devices than two of pthread and one basic");
  return nullptr;
}

flhal_stream* new_stream(Device* device) {
  flhal_stream* stream = nullptr;
  REQUIRE_FINE(flhal_stream_create(device_of(device), 0, &stream));
  return stream;
}

bool has_addresses() { return chip()->has(FLHAL_CAP_ADDRESSES_OURS); }

flhal_addr allocate(flhal_stream* stream, uint64_t bytes) {
  flhal_addr address = 0;
  REQUIRE_FINE(flhal_alloc(stream, bytes, &address));
  return address;
}

void upload(flhal_stream* stream, flhal_addr to, const void* from, uint64_t bytes) {
  REQUIRE_FINE(flhal_copy(stream, to, number(from), bytes, 0));
}

std::vector<uint8_t> download(flhal_stream* stream, flhal_addr from, uint64_t bytes) {
  std::vector<uint8_t> out(bytes);
  REQUIRE_FINE(flhal_copy(stream, number(out.data()), from, bytes, 0));
  return out;
}

std::vector<uint8_t> pattern_bytes(uint64_t n, uint32_t seed) {
  std::vector<uint8_t> out(n);
  uint32_t x = seed * 2654435761u + 1;
  for (auto& b : out) b = uint8_t((x = x * 1664525u + 1013904223u) >> 24);
  return out;
}

flhal_module* build(Device* device, const std::string& text, const char* options) {
  flhal_module* module = nullptr;
  REQUIRE_FINE(flhal_module_load(device_of(device), "opencl-c-1.2", text.data(), text.size(), options, &module));
  return module;
}

flhal_function* function(flhal_module* module, const char* name) {
  flhal_function* f = nullptr;
  REQUIRE_FINE(flhal_function_get(module, name, &f));
  return f;
}

flhal_status launch(flhal_stream* stream, flhal_function* f, uint64_t groups, uint32_t size, std::vector<flhal_kernel_arg> args) {
  const uint64_t g[3] = {groups, 1, 1};
  const uint32_t s[3] = {size, 1, 1};
  return flhal_launch(stream, f, g, s, args.data(), uint32_t(args.size()));
}

std::string left_text(flhal_status answer) { return take_plugin_error(answer).text; }

flhal_p_slab_v1 Slots::slab(uint64_t bytes, uint32_t kind) const {
  flhal_p_slab_v1 s{};
  s.struct_size = sizeof s;
  s.struct_type = FLHAL_ST_SLAB;
  s.bytes = bytes;
  s.align = 65536;
  s.kind = kind;
  flhal_status answer = table.memory_alloc(handle(), &s);
  INFO(left_text(answer));
  REQUIRE(answer == FLHAL_OK);
  return s;
}

flhal_p_stream* Slots::stream() const {
  flhal_p_stream* s = nullptr;
  REQUIRE(table.stream_create(handle(), 0, 0, &s) == FLHAL_OK);
  return s;
}

flhal_p_event* Slots::event(uint32_t flags) const {
  flhal_p_event* e = nullptr;
  REQUIRE(table.event_create(handle(), flags, &e) == FLHAL_OK);
  return e;
}

flhal_status Slots::copy(flhal_p_stream* stream, flhal_p_place dst, flhal_p_place src, uint64_t bytes, uint64_t rows, uint64_t dst_pitch,
                         uint64_t src_pitch) const {
  flhal_p_copy_v1 c{};
  c.struct_size = sizeof c;
  c.struct_type = FLHAL_ST_COPY;
  c.dst = dst;
  c.src = src;
  c.bytes = bytes;
  c.rows = rows;
  c.dst_pitch = dst_pitch;
  c.src_pitch = src_pitch;
  return table.copy(handle(), stream, &c);
}

std::vector<uint8_t> Slots::read(const flhal_p_slab_v1& slab) const {
  std::vector<uint8_t> out(slab.bytes);
  REQUIRE(copy(nullptr, host(out.data()), on(slab), slab.bytes) == FLHAL_OK);
  return out;
}

}  // namespace flhal::test
