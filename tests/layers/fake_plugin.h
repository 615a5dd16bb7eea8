// tests/layers/fake_plugin.h: a plugin that does nothing and never looks at a handle, so that calls of any wrongness may reach it.
#pragma once

#include <atomic>
#include <functional>

#include "core/plugin_table_fill.h"
#include "layers/frame.h"
#include "layers/layers_world.h"

namespace flhal::test {

struct FakePlugin {
  Plugin& plugin = *new Plugin;              // its table may be on the way of a call for ever
  static inline std::atomic<uintptr_t> next{0x1000};
  static inline std::function<void()> inside;   // runs in launch and stream_query
  template <typename T>
  static flhal_status give(T** out) {
    *out = reinterpret_cast<T*>(next += 16);
    return FLHAL_OK;
  }

  explicit FakePlugin(const char* id, uint32_t flags = 0) {
    inside = nullptr;
    plugin.id = id;
    plugin.flags = flags;
    plugin.serialize_all = (flags & FLHAL_PLUGIN_SERIALIZE_ALL) != 0;
    plugin.has_streams = plugin.has_host_access = plugin.has_kernels = plugin.has_ops = true;
    auto& t = plugin.table;
    t.init = [](const flhal_host_v1*, const flhal_init_v1*, flhal_p_plugin** out) { return give(out); };
    t.shutdown = [](flhal_p_plugin*) {};
    t.device_open = [](flhal_p_plugin*, uint32_t, flhal_p_device** out) { return give(out); };
    t.device_close = [](flhal_p_device*) {};
    t.memory_alloc = [](flhal_p_device*, flhal_p_slab_v1* s) {
      s->address = 0;
      s->host = nullptr;
      return give(&s->memory);
    };
    t.memory_free = [](flhal_p_device*, flhal_p_memory*) {};
    t.copy = [](flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*) -> flhal_status { return FLHAL_OK; };
    t.fill = [](flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t, const void*, uint32_t) -> flhal_status { return FLHAL_OK; };
    t.module_load = [](flhal_p_device*, const flhal_p_source_v1*, flhal_p_module** out) { return give(out); };
    t.module_unload = [](flhal_p_module*) {};
    t.function_get = [](flhal_p_module*, const char*, flhal_p_function** out) { return give(out); };
    t.launch = [](flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*) -> flhal_status {
      if (inside) inside();
      return FLHAL_OK;
    };
    t.host_begin = [](flhal_p_device*, const flhal_p_place*, uint64_t, uint32_t, void** out) { return give(out); };
    t.host_end = [](flhal_p_device*, const flhal_p_place*, uint64_t, uint32_t, void*) -> flhal_status { return FLHAL_OK; };
    t.stream_create = [](flhal_p_device*, int32_t, uint32_t, flhal_p_stream** out) { return give(out); };
    t.stream_destroy = [](flhal_p_stream*) {};
    t.stream_query = [](flhal_p_stream*) -> flhal_status {
      if (inside) inside();
      return FLHAL_OK;
    };
    t.stream_synchronize = [](flhal_p_stream*) -> flhal_status { return FLHAL_OK; };
    t.event_create = [](flhal_p_device*, uint32_t, flhal_p_event** out) { return give(out); };
    t.event_destroy = [](flhal_p_event*) {};
    t.event_record = [](flhal_p_event*, flhal_p_stream*) -> flhal_status { return FLHAL_OK; };
    t.event_wait = [](flhal_p_event*, flhal_p_stream*) -> flhal_status { return FLHAL_OK; };
    t.event_query = [](flhal_p_event*) -> flhal_status { return FLHAL_OK; };
    t.event_synchronize = [](flhal_p_event*) -> flhal_status { return FLHAL_OK; };
    t.event_signal = [](flhal_p_event*, flhal_status) -> flhal_status { return FLHAL_OK; };
    plugin.ops.plan_create = [](flhal_p_device*, const flhal_op_call_v1*, flhal_plan_info_v1* info, flhal_p_plan** out) {
      info->workspace_bytes = 256;
      return give(out);
    };
    plugin.ops.plan_run = [](flhal_p_plan*, flhal_p_stream*, const flhal_op_call_v1*, const flhal_p_place*) -> flhal_status { return FLHAL_OK; };
    plugin.ops.plan_destroy = [](flhal_p_plan*) {};
    fill_stubs(plugin);
    layers_attach(plugin);
    flhal_init_v1 start{sizeof start, FLHAL_ST_INIT, nullptr, 0, 0};
    REQUIRE(plugin.table.init(&plugin.host, &start, &plugin.handle) == FLHAL_OK);
    device = open(0);
  }
  ~FakePlugin() { layers_detach(plugin); }

  flhal_p_device* open(uint32_t i) {
    flhal_p_device* d = nullptr;
    REQUIRE(plugin.table.device_open(plugin.handle, i, &d) == FLHAL_OK);
    return d;
  }
  flhal_p_memory* slab(uint64_t bytes, flhal_p_device* on = nullptr) {
    flhal_p_slab_v1 s{};
    s.struct_size = sizeof s;
    s.struct_type = FLHAL_ST_SLAB;
    s.bytes = bytes;
    REQUIRE(plugin.table.memory_alloc(on ? on : device, &s) == FLHAL_OK);
    return s.memory;
  }
  flhal_p_stream* stream(flhal_p_device* on = nullptr) {
    flhal_p_stream* s = nullptr;
    REQUIRE(plugin.table.stream_create(on ? on : device, 0, 0, &s) == FLHAL_OK);
    return s;
  }
  flhal_p_event* event(uint32_t flags = 0) {
    flhal_p_event* e = nullptr;
    REQUIRE(plugin.table.event_create(device, flags, &e) == FLHAL_OK);
    return e;
  }
  flhal_p_function* function() {
    flhal_p_source_v1 source{sizeof source, FLHAL_ST_SOURCE, nullptr, "fake", "", 0, "", nullptr, 0};
    flhal_p_module* m = nullptr;
    flhal_p_function* f = nullptr;
    REQUIRE(plugin.table.module_load(device, &source, &m) == FLHAL_OK);
    REQUIRE(plugin.table.function_get(m, "f", &f) == FLHAL_OK);
    return f;
  }
  flhal_status fill(flhal_p_memory* memory, uint64_t offset, uint64_t bytes, flhal_p_stream* on = nullptr) {
    const flhal_p_place place{memory, offset, nullptr};
    const char zero = 0;
    return plugin.table.fill(device, on, &place, bytes, &zero, 1);
  }
  flhal_status launch(flhal_p_function* f, flhal_p_stream* on, flhal_p_memory* memory = nullptr, uint64_t offset = 0) {
    const flhal_p_arg arg{FLHAL_ARG_MEMORY, 0, nullptr, memory, offset, 0};
    flhal_p_launch_v1 l{sizeof l, FLHAL_ST_LAUNCH, nullptr, f, {1, 1, 1}, {1, 1, 1}, 0, &arg, memory ? 1u : 0u, sizeof arg};
    return plugin.table.launch(device, on, &l);
  }

  flhal_p_device* device = nullptr;
};

}  // namespace flhal::test
