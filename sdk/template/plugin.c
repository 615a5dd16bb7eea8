/* plugin.c: the one exported symbol, the table it hands out, and the plugin's own life. */
#include "chip.h"

#include <stddef.h>

#ifndef FLHAL_PLUGIN_ID                   /* flhal_add_plugin() gives both, and writes them into the manifest, too */
#define FLHAL_PLUGIN_ID CHIP_NAME
#define FLHAL_PLUGIN_VERSION "0.0.0"
#endif

flhal_status chip_fail(const flhal_p_plugin* plugin, flhal_status status, const char* text) {
  plugin->host->set_error(status, 0, text);           /* the text is copied */
  return status;
}

/* Slot 1. driver: load its library here if that is cheap and opens no chip; opening is device_open's work. */
static flhal_status init(const flhal_host_v1* host, const flhal_init_v1* in, flhal_p_plugin** out) {
  flhal_p_plugin* plugin;
  /* in->negotiated_minor: the ABI minor both sides speak; 1.0 needs no choice. in->next: we know no extension. */
  if (flhal_needed_extension(in->next)) {
    host->set_error(FLHAL_E_UNSUPPORTED, 0, CHIP_NAME ": init needs an extension that this plugin does not know; install a newer plugin");
    return FLHAL_E_UNSUPPORTED;
  }
  plugin = host->alloc(sizeof *plugin, 16);
  if (plugin == NULL) return FLHAL_E_HOST_MEMORY;
  plugin->host = host;
#ifdef CHIP_ASYNC
  pthread_mutex_init(&plugin->mutex, NULL);
  pthread_cond_init(&plugin->changed, NULL);
#endif
  *out = plugin;
  return FLHAL_OK;
}

/* Slot 2. All devices are closed and all handles gone; nothing is called afterwards. Join your threads here. */
#ifndef CHIP_ASYNC
static void shutdown(flhal_p_plugin* plugin) { plugin->host->free(plugin); }
#endif
#ifdef CHIP_ASYNC
static void shutdown(flhal_p_plugin* plugin) {
  pthread_cond_destroy(&plugin->changed);
  pthread_mutex_destroy(&plugin->mutex);
  plugin->host->free(plugin);
}
#endif

#ifndef CHIP_ASYNC
/* C99 sets every slot that is not named to NULL: core emulates it (streams, events) or does without. */
#endif
#ifdef CHIP_ASYNC
/* C99 sets every slot that is not named to NULL: core does without. */
#endif
static const flhal_plugin_table_v1 table = {
    .struct_size = sizeof(flhal_plugin_table_v1),
    .struct_type = FLHAL_ST_TABLE,
    .init = init,
    .shutdown = shutdown,
    .device_count = chip_device_count,
    .device_info = chip_device_info,
    .device_open = chip_device_open,
    .device_close = chip_device_close,
    .memory_alloc = chip_memory_alloc,
    .memory_free = chip_memory_free,
    .copy = chip_copy,
    .fill = chip_fill,
#ifdef CHIP_KERNEL
    .module_load = chip_module_load,
    .module_unload = chip_module_unload,
    .function_get = chip_function_get,
    .launch = chip_launch,
#endif
#ifdef CHIP_ASYNC
    .stream_create = chip_stream_create,
    .stream_destroy = chip_stream_destroy,
    .stream_query = chip_stream_query,
    .stream_synchronize = chip_stream_synchronize,
    .event_create = chip_event_create,
    .event_destroy = chip_event_destroy,
    .event_record = chip_event_record,
    .event_wait = chip_event_wait,
    .event_query = chip_event_query,
    .event_synchronize = chip_event_synchronize,
    .event_elapsed_ns = chip_event_elapsed_ns,
    .event_signal = chip_event_signal,
#endif
};

/* A pure function: it starts nothing, so core may call it before it has decided to use this plugin. */
flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  (void)host;
  out->abi_minor = FLHAL_PLUGIN_ABI_MINOR;            /* the newest ABI minor we can speak ...             */
  out->oldest_host_minor = 0;                         /* ... and the oldest core we can work with          */
  out->id = FLHAL_PLUGIN_ID;                          /* equal ids are the same plugin: choose your own    */
  out->version = FLHAL_PLUGIN_VERSION;
  out->build_id = FLHAL_PLUGIN_ID "-" FLHAL_PLUGIN_VERSION;        /* core's cache of probe answers belongs to it       */
  out->vendor = "Example";
#ifndef CHIP_ASYNC
  /* SERIALIZE_ALL: core makes one call at a time, so no slot needs a lock. Take it out once your code is thread safe.
   * FORK_SAFE_PROBE: counting starts no thread and no driver, so core may ask in process. Without it core asks in a
   * child process, which is slower but cannot harm the program. */
  out->flags = FLHAL_PLUGIN_SERIALIZE_ALL | FLHAL_PLUGIN_FORK_SAFE_PROBE;
#endif
#ifdef CHIP_ASYNC
  /* No SERIALIZE_ALL: a call that waits for an event must not keep out the call that ends the wait.
   * FORK_SAFE_PROBE: counting starts no thread and no driver, so core may ask in process. Without it core asks in a
   * child process, which is slower but cannot harm the program. */
  out->flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
#endif
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;                                 /* keeps this build out of a program without the runtime */
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  out->table = &table;
  out->optional_table = NULL;                         /* later: "ops", to make single operators fast       */
  return FLHAL_OK;
}
