// src/core/plugin_table.h: core's private copy of a plugin's table. No slot is null: what the plugin lacks is a stub that
// answers FLHAL_E_UNSUPPORTED, so there is no null jump. Layers (validate, trace, fault, stats) wrap this copy.
#pragma once

#include <flhal/plugin.h>
#include <flhal/x_module_binary.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plugin_call.h"
#include "core/status.h"

namespace flhal {

struct Plugin {
  std::string id, version, build_id, vendor, library_path;
  uint32_t negotiated_minor = 0, flags = 0;
  flhal_plugin_table_v1 table{};       // private copy, short tails filled, missing slots stubbed
  flhal_ops_v1 ops{};                  // stubbed when absent
  bool has_ops = false;
  const flhal_x_module_binary_v1* module_binary = nullptr;   // nullptr when the plugin keeps its code to itself
  bool has_kernels = false;            // slots 11..14
  bool has_streams = false;            // slots 18..28
  bool has_host_access = false;        // host_begin and host_end
  bool has_budget = false;
  flhal_p_plugin* handle = nullptr;    // what init gave
  flhal_host_v1 host{};                // what core gave the plugin; lives until shutdown returns
  std::vector<std::string> notes;      // harmless oddities of the load, for the report

  // A plugin that is not fork-safe is known from its probe child at first: only stubs, loaded by the first open.
  std::mutex load_mutex;
  bool loaded = false;                 // library open, init done

  // FLHAL_PLUGIN_SERIALIZE_ALL: one call at a time in the whole plugin. lock() gives an empty lock otherwise.
  bool serialize_all = false;
  std::recursive_mutex serialize_mutex;
  std::unique_lock<std::recursive_mutex> lock() {
    return serialize_all ? std::unique_lock<std::recursive_mutex>(serialize_mutex)
                         : std::unique_lock<std::recursive_mutex>();
  }
};

// Turns a plugin's answer into a Status: positive and zero pass; negative ones get the text the plugin left by
// host->set_error (or a sentence saying that it left none), prefixed with plugin, slot and device.
Status plugin_answer(const Plugin& plugin, const char* slot, flhal_status answer);

}  // namespace flhal
