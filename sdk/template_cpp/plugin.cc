// plugin.cc: the one exported symbol, the table it hands out, and the plugin's own life.
#include "chip.h"

#ifndef FLHAL_PLUGIN_ID                   // flhal_add_plugin() gives both, and writes them into the manifest, too
#define FLHAL_PLUGIN_ID "ram_cpp"
#define FLHAL_PLUGIN_VERSION "0.0.0"
#endif

namespace {

// Slot 1. driver: load its library here if that is cheap and opens no chip; opening is device_open's work.
flhal_status init(const flhal_host_v1* host, const flhal_init_v1*, flhal_p_plugin** out) {
  flhal::host = host;                     // first: what follows may throw, and its sentence needs it
  *out = new flhal_p_plugin;
  return FLHAL_OK;
}

// Slot 2. All devices are closed and all handles gone; nothing is called afterwards. Join your threads here.
void shutdown(flhal_p_plugin* plugin) { delete plugin; }

#ifndef CHIP_ASYNC
// Every slot that is not named is NULL: core emulates it (streams, events) or does without.
#endif
#ifdef CHIP_ASYNC
// Every slot that is not named is NULL: core does without.
#endif
constexpr flhal_plugin_table_v1 kTable = {
    FLHAL_TABLE_HEAD,
    .init = flhal::slot<init>,
    .shutdown = flhal::slot<shutdown>,
    .device_count = flhal::slot<chip::device_count>,
    .device_info = flhal::slot<chip::device_info>,
    .device_open = flhal::slot<chip::device_open>,
    .device_close = flhal::slot<chip::device_close>,
    .memory_alloc = flhal::slot<chip::memory_alloc>,
    .memory_free = flhal::slot<chip::memory_free>,
    .copy = flhal::slot<chip::copy>,
    .fill = flhal::slot<chip::fill>,
#ifdef CHIP_KERNEL
    .module_load = flhal::slot<chip::module_load>,
    .module_unload = flhal::slot<chip::module_unload>,
    .function_get = flhal::slot<chip::function_get>,
    .launch = flhal::slot<chip::launch>,
#endif
#ifdef CHIP_ASYNC
    .stream_create = flhal::slot<chip::stream_create>,
    .stream_destroy = flhal::slot<chip::stream_destroy>,
    .stream_query = flhal::slot<chip::stream_query>,
    .stream_synchronize = flhal::slot<chip::stream_synchronize>,
    .event_create = flhal::slot<chip::event_create>,
    .event_destroy = flhal::slot<chip::event_destroy>,
    .event_record = flhal::slot<chip::event_record>,
    .event_wait = flhal::slot<chip::event_wait>,
    .event_query = flhal::slot<chip::event_query>,
    .event_synchronize = flhal::slot<chip::event_synchronize>,
    .event_elapsed_ns = flhal::slot<chip::event_elapsed_ns>,
    .event_signal = flhal::slot<chip::event_signal>,
#endif
};

}  // namespace

// A pure function: it starts nothing, so core may call it before it has decided to use this plugin.
flhal_status flhal_plugin_v1(const flhal_host_v1*, flhal_plugin_info_v1* out) {
  out->abi_minor = FLHAL_PLUGIN_ABI_MINOR;            // the newest ABI minor we can speak ...
  out->oldest_host_minor = 0;                         // ... and the oldest core we can work with
  out->id = FLHAL_PLUGIN_ID;                          // equal ids are the same plugin: choose your own
  out->version = FLHAL_PLUGIN_VERSION;
  out->build_id = FLHAL_PLUGIN_ID "-" FLHAL_PLUGIN_VERSION;   // core's cache of probe answers belongs to it
  out->vendor = "Example";
#ifndef CHIP_ASYNC
  // SERIALIZE_ALL: core makes one call at a time, so no slot needs a lock. Take it out once your code is thread safe.
  // FORK_SAFE_PROBE: counting starts no thread and no driver, so core may ask in process. Without it core asks in a child
  // process, which is slower but cannot harm the program.
  out->flags = FLHAL_PLUGIN_SERIALIZE_ALL | FLHAL_PLUGIN_FORK_SAFE_PROBE;
#endif
#ifdef CHIP_ASYNC
  // No SERIALIZE_ALL: a call that waits for an event must not keep out the call that ends the wait.
  // FORK_SAFE_PROBE: counting starts no thread and no driver, so core may ask in process. Without it core asks in a child
  // process, which is slower but cannot harm the program.
  out->flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
#endif
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;                                 // keeps this build out of a program without the runtime
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  out->table = &kTable;
  out->optional_table = nullptr;                      // later: "ops", to make single operators fast
  return FLHAL_OK;
}
