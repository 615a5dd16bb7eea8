// reference_plugins/opencl/plugin.cc: the one exported symbol, the table behind it, and the plugin's own life.
#include <cstring>

#include "../host/build_id.h"
#include "opencl_plugin.h"
#include "surroundings.h"

namespace flhal::opencl {
namespace {

flhal_status init(const flhal_host_v1* host, const flhal_init_v1* start, flhal_p_plugin** out) {
  set_host(host);
  if (flhal_status s = extensions(start->next, "init"); s != FLHAL_OK) return s;
  return no_throw("init", [&]() -> flhal_status {
    KeepSurroundings keep;
    auto setting = [&](const char* key) { return host && host->config ? host->config(key) : nullptr; };
    if (std::string why = open_loader(setting("opencl.loader")); !why.empty()) return fail(FLHAL_E_NOT_FOUND, why);
    auto plugin = std::make_unique<flhal_p_plugin>();
    if (std::string why = find_chips(setting("opencl.memory"), &plugin->chips); !why.empty()) return fail(FLHAL_E_NOT_FOUND, why);
    *out = plugin.release();
    return FLHAL_OK;
  });
}

// Platforms and devices belong to the loader; nothing else is left by now. A driver may still call back with a text.
void shutdown(flhal_p_plugin* plugin) {
  set_host(nullptr);
  delete plugin;
}

const flhal_plugin_table_v1 kTable = {
    sizeof(flhal_plugin_table_v1), FLHAL_ST_TABLE, nullptr,
    init, shutdown, slots::device_count, slots::device_info, slots::device_open, slots::device_close,
    slots::memory_alloc, slots::memory_free, slots::copy, slots::fill,
    slots::module_load, slots::module_unload, slots::function_get, slots::launch,
    slots::memory_budget, slots::host_begin, slots::host_end,
    slots::stream_create, slots::stream_destroy, slots::stream_query, slots::stream_synchronize,
    slots::event_create, slots::event_destroy, slots::event_record, slots::event_wait, slots::event_query,
    slots::event_synchronize, slots::event_elapsed_ns, slots::event_signal,
};

const void* optional_table(const char* name, uint32_t /*oldest_version*/) {
  return std::strcmp(name, FLHAL_X_MODULE_BINARY) == 0 ? module_binary_table() : nullptr;
}

constexpr uint32_t sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return 1;
#elif defined(__SANITIZE_THREAD__)
  return 2;
#else
  return 0;
#endif
}

}  // namespace
}  // namespace flhal::opencl

extern "C" flhal_status flhal_plugin_v1(const flhal_host_v1*, flhal_plugin_info_v1* out) {
  using namespace flhal::opencl;
  flhal_plugin_info_v1 info{};
  const uint32_t size = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
  info.struct_size = out->struct_size;   // the head is the caller's: its struct may be longer than ours
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  info.next = out->next;
  info.abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  info.oldest_host_minor = 0;
  info.id = "opencl";
  info.version = FLHAL_PLUGIN_VERSION;
  info.build_id = flhal::host::build_id();
  info.vendor = "flhal";
  info.flags = 0;   // not FORK_SAFE_PROBE: asking a driver for its devices starts threads
  info.sanitizer = sanitizer();
  info.table = &kTable;
  info.optional_table = optional_table;
  std::memcpy(out, &info, size);
  return FLHAL_OK;
}
