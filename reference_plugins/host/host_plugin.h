// reference_plugins/host/host_plugin.h: the plugin's own objects, and the slots that each file adds to the table.
//
// Idea: the chip is this process's own processor. A slab is a mapping, an address is a pointer, a module is code that is
//       compiled already, and every call finishes before it returns; core emulates the streams.
// Threads: all objects are immutable after they are made, but for the counters marked atomic.
#pragma once

#include <flhal/plugin.h>

#include <atomic>
#include <string>

#include "machine.h"

struct flhal_p_plugin {
  const flhal_host_v1* host;
  flhal::host::Machine machine;            // read once in init: the strings of device_info live as long as the plugin
};

struct flhal_p_device {
  flhal_p_plugin* plugin;
  std::atomic<uint64_t> slab_bytes{0};     // handed out and not freed
};

struct flhal_p_memory {
  char* base;
  uint64_t bytes;                          // of the mapping
};

namespace flhal::host {

inline char* pointer_to(const flhal_p_place& place) {
  return (place.memory ? place.memory->base : static_cast<char*>(place.host)) + place.offset;
}

// Leaves `text` with core and passes the status on, so that a slot can `return fail(...)`.
flhal_status fail(const flhal_p_plugin* plugin, flhal_status status, const std::string& text);
// A struct of core's carries an extension that may not be ignored, and we know none.
flhal_status needs_extension(const flhal_host_v1* host, const char* slot, uint32_t type);

// device.cc
flhal_status plugin_init(const flhal_host_v1*, const flhal_init_v1*, flhal_p_plugin** out);
void plugin_shutdown(flhal_p_plugin*);
flhal_status device_count(flhal_p_plugin*, uint32_t* out);
flhal_status device_info(flhal_p_plugin*, uint32_t index, flhal_p_device_info_v1* out);
flhal_status device_open(flhal_p_plugin*, uint32_t index, flhal_p_device** out);
void device_close(flhal_p_device*);

// memory.cc
flhal_status memory_alloc(flhal_p_device*, flhal_p_slab_v1* inout);
void memory_free(flhal_p_device*, flhal_p_memory*);
flhal_status memory_budget(flhal_p_device*, uint64_t* free_bytes, uint64_t* total_bytes);
flhal_status host_begin(flhal_p_device*, const flhal_p_place*, uint64_t bytes, uint32_t access, void** host);
flhal_status host_end(flhal_p_device*, const flhal_p_place*, uint64_t bytes, uint32_t access, void* host);

// copy.cc
flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*);
flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes);

// module.cc
flhal_status module_load(flhal_p_device*, const flhal_p_source_v1*, flhal_p_module** out);
void module_unload(flhal_p_module*);
flhal_status function_get(flhal_p_module*, const char* name, flhal_p_function** out);
flhal_status launch(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*);

// ops.cc: the optional table "ops".
const flhal_ops_v1* ops_table();

}  // namespace flhal::host
