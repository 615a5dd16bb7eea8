// tests/layers/drive_main/drive.cc: a program that calls every slot of one plugin through core's wrapped copy of its tables, under the layer
// validate, and prints the report "layers". Usage: drive LIBRARY
//
// It keeps the contract (what it does wrong would be found, too), but for what conformance also asks: an index past the count, a kind
// of memory and a dialect that do not exist.
#include <flhal/ops.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/loader.h"
#include "core/plugin_call.h"
#include "layers/frame.h"
#include "layers/layers_report.h"

using namespace flhal;

namespace {

Plugin& g_plugin = *new Plugin;
flhal_p_device* g_device = nullptr;
flhal_p_slab_v1 g_a{}, g_b{};

auto& table() { return g_plugin.table; }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void nap(const void* const*, uint64_t, uint64_t) { pause_ms(60); }
void nothing(const void* const*, uint64_t, uint64_t) {}
constexpr flhal_host_function kFunctions[] = {{"nap", nap}, {"count_group", nothing}};
constexpr flhal_host_module kModule = {sizeof kModule, 2, kFunctions};

void count_and_describe() {
  uint32_t n = 0;
  for (int i = 0; i < 12; ++i) plugin_call(table().device_count, g_plugin.handle, &n);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i <= n && i < 4; ++i) {            // also one past the count
      struct {
        flhal_p_device_info_v1 info;
        char behind[64];                                    // of core's own watch
      } answer{};
      answer.info.struct_size = sizeof answer.info;
      answer.info.struct_type = FLHAL_ST_DEVICE_INFO;
      plugin_call(table().device_info, g_plugin.handle, i, &answer.info);
    }
  }
  flhal_p_device* refused = nullptr;
  plugin_call(table().device_open, g_plugin.handle, n, &refused);
}

flhal_p_slab_v1 slab_of(uint64_t bytes, uint32_t kind) {
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab;
  slab.struct_type = FLHAL_ST_SLAB;
  slab.bytes = bytes;
  slab.align = 4096;
  slab.kind = kind;
  return slab;
}

void copy(flhal_p_place dst, flhal_p_place src, uint64_t bytes) {
  flhal_p_copy_v1 c{sizeof c, FLHAL_ST_COPY, nullptr, dst, src, bytes, 1, 0, 0};
  plugin_call(table().copy, g_device, static_cast<flhal_p_stream*>(nullptr), &c);
}

bool use_memory() {
  g_a = slab_of(1 << 16, FLHAL_MEM_DEVICE), g_b = slab_of(1 << 16, FLHAL_MEM_DEVICE);
  if (plugin_call(table().memory_alloc, g_device, &g_a) != FLHAL_OK || plugin_call(table().memory_alloc, g_device, &g_b) != FLHAL_OK) return false;
  flhal_p_slab_v1 odd = slab_of(4096, 7), huge = slab_of(uint64_t{1} << 60, FLHAL_MEM_DEVICE);
  if (plugin_call(table().memory_alloc, g_device, &odd) == FLHAL_OK) plugin_call(table().memory_free, g_device, odd.memory);
  plugin_call(table().memory_alloc, g_device, &huge);
  if (g_plugin.has_budget) {
    uint64_t free = 0, total = 0;
    plugin_call(table().memory_budget, g_device, &free, &total);
  }
  std::vector<char> host(4096, 7);
  const flhal_p_place a{g_a.memory, 0, nullptr}, b{g_b.memory, 4096, nullptr}, here{nullptr, 0, host.data()};
  const uint32_t one = 0x3f800000;
  copy(a, here, host.size());
  copy(a, here, 0);
  copy(b, a, 4096);
  plugin_call(table().fill, g_device, static_cast<flhal_p_stream*>(nullptr), &a, uint64_t{4096}, static_cast<const void*>(&one), 4u);
  copy(here, a, host.size());
  if (!g_plugin.has_host_access) return true;
  for (uint64_t offset : {0u, 4096u}) {
    const flhal_p_place place{g_a.memory, offset, nullptr};
    void* view = nullptr;
    if (plugin_call(table().host_begin, g_device, &place, uint64_t{256}, FLHAL_READ | FLHAL_WRITE, &view) != FLHAL_OK) continue;
    plugin_call(table().host_end, g_device, &place, uint64_t{256}, FLHAL_READ | FLHAL_WRITE, view);
  }
  return true;
}

flhal_p_module* load(const char* dialect, const void* data, uint64_t bytes) {
  char log[64] = {};
  flhal_p_source_v1 source{sizeof source, FLHAL_ST_SOURCE, nullptr, dialect, data, bytes, "", log, sizeof log};
  flhal_p_module* module = nullptr;
  return plugin_call(table().module_load, g_device, &source, &module) == FLHAL_OK ? module : nullptr;
}

void launch(flhal_p_function* f, flhal_p_stream* stream) {
  const flhal_p_arg arg{FLHAL_ARG_MEMORY, 0, nullptr, g_b.memory, 0, g_b.address};
  flhal_p_launch_v1 l{sizeof l, FLHAL_ST_LAUNCH, nullptr, f, {1, 1, 1}, {1, 1, 1}, 0, &arg, 1, sizeof arg};
  plugin_call(table().launch, g_device, stream, &l);
}

flhal_p_event* event(uint32_t flags) {
  flhal_p_event* e = nullptr;
  return plugin_call(table().event_create, g_device, flags, &e) == FLHAL_OK ? e : nullptr;
}

void use_streams(flhal_p_function* sleeper) {
  flhal_p_stream *s = nullptr, *other = nullptr;
  if (plugin_call(table().stream_create, g_device, 0, 0u, &s) != FLHAL_OK || plugin_call(table().stream_create, g_device, 0, 0u, &other) != FLHAL_OK) return;
  flhal_p_event *first = event(FLHAL_EVENT_TIMING), *second = event(FLHAL_EVENT_TIMING);
  if (first == nullptr || second == nullptr) return;
  plugin_call(table().event_query, first);                  // never recorded
  launch(sleeper, s);                                       // 60 ms
  plugin_call(table().event_record, first, s);
  plugin_call(table().event_query, first);
  plugin_call(table().stream_query, s);
  plugin_call(table().event_query, first);
  plugin_call(table().stream_synchronize, s);
  plugin_call(table().event_query, first);
  plugin_call(table().event_synchronize, first);
  launch(sleeper, s);
  plugin_call(table().event_record, second, s);
  plugin_call(table().event_synchronize, second);
  plugin_call(table().event_query, second);
  plugin_call(table().stream_synchronize, s);
  pause_ms(30);
  flhal_p_event* third = event(FLHAL_EVENT_TIMING);
  plugin_call(table().event_record, third, s);
  plugin_call(table().event_wait, third, other);
  plugin_call(table().event_synchronize, third);
  uint64_t ns = 0;
  plugin_call(table().event_elapsed_ns, second, third, &ns);
  const flhal_p_place place{g_a.memory, 0, nullptr};
  const char zero = 0;
  launch(sleeper, s);
  plugin_call(table().fill, g_device, s, &place, uint64_t{64}, static_cast<const void*>(&zero), 1u);
  for (flhal_p_stream* stream : {s, other}) plugin_call(table().stream_synchronize, stream);
  for (flhal_p_event* e : {first, second, third}) plugin_call(table().event_destroy, e);
  for (flhal_p_stream* stream : {s, other}) plugin_call(table().stream_destroy, stream);
}

void use_kernels() {
  if (flhal_p_module* odd = load("no-such-dialect", "x", 1)) plugin_call(table().module_unload, odd);
  flhal_p_module* module = load(FLHAL_DIALECT_HOST, &kModule, sizeof kModule);
  if (module == nullptr) return;
  flhal_p_function *sleeper = nullptr, *quick = nullptr, *none = nullptr;
  plugin_call(table().function_get, module, "nap", &sleeper);
  plugin_call(table().function_get, module, "count_group", &quick);
  plugin_call(table().function_get, module, "no_such_function", &none);
  if (quick != nullptr) launch(quick, nullptr);
  if (sleeper != nullptr && g_plugin.has_streams) use_streams(sleeper);
  plugin_call(table().module_unload, module);
}

struct Add {
  int64_t size, stride = 1;
  flhal_tensor_v1 tensors[3] = {};
  flhal_op_call_v1 call{};
  explicit Add(int64_t n) : size(n) {
    for (uint32_t i = 0; i < 3; ++i) {
      const uint64_t offset = 4096 * i;
      tensors[i] = {g_a.address ? g_a.address + offset : 0, g_a.memory, offset, uint64_t(n) * 4, &size, &stride, FLHAL_F32, 1, 0, 0, 0};
    }
    call.struct_size = sizeof call;
    call.struct_type = FLHAL_ST_OP_CALL;
    call.op = FLHAL_OP_ADD;
    call.op_version = 1;
    call.name = "add";
    call.tensors = tensors;
    call.tensor_stride = sizeof(flhal_tensor_v1);
    call.n_outputs = 1;
    call.n_inputs = 2;
    call.attr_stride = sizeof(flhal_attr_v1);
    call.compute_dtype = FLHAL_F32;
  }
};

void use_operations() {
  for (int64_t n : {int64_t{16}, int64_t{0}}) {
    for (const char* name : {"add", "no.such_operation"}) {
      Add add(n);
      add.call.name = name;
      if (name[0] == 'n') add.call.op = 0;
      uint16_t layouts[3] = {};
      flhal_plan_info_v1 info{};
      info.struct_size = sizeof info;
      info.struct_type = FLHAL_ST_PLAN_INFO;
      info.wanted_layouts = layouts;
      info.n_wanted = 3;
      flhal_p_plan* plan = nullptr;
      if (plugin_call(g_plugin.ops.plan_create, g_device, &add.call, &info, &plan) != FLHAL_OK || plan == nullptr) continue;
      if (info.workspace_bytes == 0) plugin_call(g_plugin.ops.plan_run, plan, static_cast<flhal_p_stream*>(nullptr), &add.call, static_cast<const flhal_p_place*>(nullptr));
      plugin_call(g_plugin.ops.plan_destroy, plan);
    }
  }
  const char *name = nullptr, *schema = nullptr;
  for (uint32_t i = 0; i < 10010 && plugin_call(g_plugin.ops.op_describe, g_plugin.handle, i, &name, &schema) == FLHAL_OK; ++i) continue;
}

void drive() {
  flhal_init_v1 start{};
  start.struct_size = sizeof start;
  start.struct_type = FLHAL_ST_INIT;
  start.negotiated_minor = g_plugin.negotiated_minor;
  if (plugin_call(table().init, &g_plugin.host, &start, &g_plugin.handle) != FLHAL_OK || g_plugin.handle == nullptr) return;
  count_and_describe();
  if (plugin_call(table().device_open, g_plugin.handle, 0u, &g_device) != FLHAL_OK || g_device == nullptr) return;
  if (use_memory()) {
    if (g_plugin.has_kernels) use_kernels();
    if (g_plugin.has_ops) use_operations();
    plugin_call(table().memory_free, g_device, g_a.memory);
    plugin_call(table().memory_free, g_device, g_b.memory);
  }
  plugin_call(table().device_close, g_device);
  plugin_call(table().shutdown, g_plugin.handle);
  // Once more: does an index still mean the same chip?
  g_plugin.handle = nullptr;
  if (plugin_call(table().init, &g_plugin.host, &start, &g_plugin.handle) != FLHAL_OK || g_plugin.handle == nullptr) return;
  count_and_describe();
  plugin_call(table().shutdown, g_plugin.handle);
}

}  // namespace

int main(int, char** argv) {
  PluginFile file;
  Refusal refusal = inspect_plugin_file(argv[1], &file);
  if (!refusal) refusal = load_library(file, "", g_plugin);
  if (refusal) {
    std::fprintf(stderr, "drive: %s\n", refusal.sentence().c_str());
    return 2;
  }
  layers_attach(g_plugin);
  drive();
  std::puts(layers_json().c_str());
  std::fflush(stdout);
  std::_Exit(0);                             // mutants leave threads and exit handlers behind
}
