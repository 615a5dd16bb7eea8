// reference_plugins/host/plugin.cc: the one exported symbol and the table behind it.
//
// Slots 18..29 are empty: every call finishes before it returns, and core emulates streams and events.
#include <cstring>

#include "build_id.h"
#include "host_plugin.h"

namespace flhal::host {
namespace {

const flhal_plugin_table_v1 kTable = {
    sizeof(flhal_plugin_table_v1), FLHAL_ST_TABLE, nullptr,
    plugin_init, plugin_shutdown, device_count, device_info, device_open, device_close,
    memory_alloc, memory_free, copy, fill,
    module_load, module_unload, function_get, launch,
    memory_budget, host_begin, host_end,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
};

const void* optional_table(const char* name, uint32_t /*oldest_version*/) {
  return std::strcmp(name, "ops") == 0 ? ops_table() : nullptr;
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
}  // namespace flhal::host

extern "C" flhal_status flhal_plugin_v1(const flhal_host_v1*, flhal_plugin_info_v1* out) {
  using namespace flhal::host;
  flhal_plugin_info_v1 info{};
  const uint32_t size = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
  info.struct_size = out->struct_size;   // the head is the caller's: its struct may be longer than ours
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  info.next = out->next;
  info.abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  info.oldest_host_minor = 0;
  info.id = "host";
  info.version = FLHAL_PLUGIN_VERSION;
  info.build_id = build_id();
  info.vendor = "flhal";
  info.flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
  info.sanitizer = sanitizer();
  info.table = &kTable;
  info.optional_table = optional_table;
  std::memcpy(out, &info, size);
  return FLHAL_OK;
}
