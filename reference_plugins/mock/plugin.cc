// plugin.cc: the exported symbol, the tables by script, and the plugin's own life.
#include <algorithm>

#include "mock.h"

namespace mock {
namespace {

std::atomic<const flhal_host_v1*> g_host{nullptr};

flhal_status init(const flhal_host_v1* host, const flhal_init_v1* start, flhal_p_plugin** out) {
  set_host(host);
  if (flhal_status s = extensions(start->next, "init"); s != FLHAL_OK) return s;
  auto* script = new Script();
  std::string error;
  if (!script_from_surroundings(host, script, &error)) return fail(FLHAL_E_INVALID, error);
  set_script(script);
  if (flhal_status s = slot_begin(Slot::init, 0); s != FLHAL_OK) return s;

  auto* plugin = new flhal_p_plugin();
  for (uint32_t chip = 0; chip < kChips; ++chip)
    if (script->chips & (1u << chip)) plugin->chip_of[plugin->n_devices++] = chip;
  static constexpr flhal_dtype kAll[] = {FLHAL_I8, FLHAL_I16, FLHAL_I32, FLHAL_I64, FLHAL_U8, FLHAL_U16, FLHAL_U32, FLHAL_U64,
                                         FLHAL_F16, FLHAL_F32, FLHAL_F64, FLHAL_BF16, FLHAL_C32, FLHAL_C64, FLHAL_C128,
                                         FLHAL_BOOL, FLHAL_F8_E4M3FN, FLHAL_F8_E4M3FNUZ, FLHAL_F8_E5M2, FLHAL_F8_E5M2FNUZ};
  for (flhal_dtype dtype : kAll)
    if (std::find(script->no_dtype.begin(), script->no_dtype.end(), dtype) == script->no_dtype.end())
      plugin->storage_dtypes.push_back(dtype);
  *out = plugin;
  return FLHAL_OK;
}

void shutdown(flhal_p_plugin* plugin) {
  if (plugin->open_devices.load() != 0) misuse(0, "shutdown while devices are open");
  delete plugin;
  set_host(nullptr);
}

// Which slots exist is decided once per process: core may call flhal_plugin_v1 any number of times.
const flhal_plugin_table_v1* build_table(const Script& script) {
  auto* t = new flhal_plugin_table_v1{};
  t->struct_size = sizeof *t;
  t->struct_type = FLHAL_ST_TABLE;
  t->init = init;
  t->shutdown = shutdown;
  t->device_count = slots::device_count;
  t->device_info = slots::device_info;
  t->device_open = slots::device_open;
  t->device_close = slots::device_close;
  t->memory_alloc = slots::memory_alloc;
  t->memory_free = slots::memory_free;
  t->copy = slots::copy;
  t->fill = slots::fill;
  if (!script.no_kernels) {
    t->module_load = slots::module_load;
    t->module_unload = slots::module_unload;
    t->function_get = slots::function_get;
    t->launch = slots::launch;
  }
  t->memory_budget = slots::memory_budget;
  if (!script.no_host_access) {
    t->host_begin = slots::host_begin;
    t->host_end = slots::host_end;
  }
  if (!script.no_streams) {
    t->stream_create = slots::stream_create;
    t->stream_destroy = slots::stream_destroy;
    t->stream_query = slots::stream_query;
    t->stream_synchronize = slots::stream_synchronize;
  }
  if (!script.no_streams && !script.no_events) {
    t->event_create = slots::event_create;
    t->event_destroy = slots::event_destroy;
    t->event_record = slots::event_record;
    t->event_wait = slots::event_wait;
    t->event_query = slots::event_query;
    t->event_synchronize = slots::event_synchronize;
    t->event_elapsed_ns = slots::event_elapsed_ns;
    t->event_signal = slots::event_signal;
  }
  return t;
}

struct Frozen {
  Script script;
  const flhal_plugin_table_v1* table;
};

const Frozen& frozen(const flhal_host_v1* host) {
  static const Frozen* const once = [host] {
    auto* f = new Frozen();
    std::string error;   // a bad script is told by init; here it only must not crash
    script_from_surroundings(host, &f->script, &error);
    f->table = build_table(f->script);
    return f;
  }();
  return *once;
}

const void* optional_table(const char* name, uint32_t) {
  std::string wanted = name;
  if (wanted == "ops") return frozen(nullptr).script.no_ops ? nullptr : &kOps;
  if (wanted == FLHAL_MOCK_CONTROL_NAME) return &kControl;
  return nullptr;
}

}  // namespace

void set_host(const flhal_host_v1* host) { g_host.store(host, std::memory_order_release); }

flhal_status fail(flhal_status code, const std::string& text) {
  const flhal_host_v1* host = g_host.load(std::memory_order_acquire);
  if (host != nullptr && code < 0) host->set_error(code, code <= FLHAL_E_VENDOR_LAST ? code : 0, text.c_str());
  return code;
}

flhal_status extensions(const void* next, const char* slot) {
  const uint32_t needed = flhal_needed_extension(next);
  if (needed == 0) return FLHAL_OK;
  return fail(FLHAL_E_UNSUPPORTED, "mock: " + std::string(slot) + " needs the extension " + std::to_string(needed & 0x7fffffffu) +
                                       " (it may not be ignored), which this plugin does not know; install a newer plugin");
}

void misuse(uint32_t chip, const char* what) {
  counts(chip).misuse.fetch_add(1, std::memory_order_relaxed);
  const flhal_host_v1* host = g_host.load(std::memory_order_acquire);
  if (host != nullptr) host->log(0, (std::string("mock: misuse: ") + what).c_str());
}

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

flhal_status slot_begin(Slot slot, uint32_t chip) {
  flhal_status code = scripted_failure(slot, false);
  if (__builtin_expect(code == FLHAL_OK, 1)) return FLHAL_OK;
  static constexpr const char* kChipNames[] = {"chip_a", "chip_b"};
  return fail(code, std::string("mock ") + kChipNames[chip] + ": the script made " + slot_name(slot) + " fail");
}

}  // namespace mock

flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  out->abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  out->oldest_host_minor = 0;
  out->id = "mock";
  out->version = FLHAL_PLUGIN_VERSION;
  out->build_id = "mock-" FLHAL_PLUGIN_VERSION;
  out->vendor = "flhal";
  out->flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  out->table = mock::frozen(host).table;
  out->optional_table = mock::optional_table;
  return FLHAL_OK;
}
