// src/core/loader.h: from a library file to a plugin whose table is core's own. A load is a transaction: any failure leaves
// nothing but a sentence (and the mapping: a library is never unloaded, threads or handlers of it may live).
#pragma once

#include <memory>
#include <string>

#include "core/plugin_file.h"
#include "core/plugin_table.h"
#include "core/refusal.h"

namespace flhal {

// Called before each step that runs the plugin's code: "opening the library", "flhal_plugin_v1", "init", "device_count",
// "device_info". The probe child tells its parent, so that a hang or crash names the step.
extern void (*g_load_step)(const char* step);

// Opens the library, calls flhal_plugin_v1 and fills the plugin's fields. Does not call init.
// `expected_id`: what the manifest says; "" when there is none. Fails unless `file` was inspected well.
Refusal load_library(const PluginFile& file, const std::string& expected_id, Plugin& plugin);

// Calls the slot init. Afterwards plugin.handle is set.
Refusal init_plugin(Plugin& plugin);

// Calls the slot shutdown, if init had succeeded.
void shut_down_plugin(Plugin& plugin);

// Runs `body`, which calls into the plugin; an exception becomes a refusal that names the plugin and the slot.
template <typename Body>
Refusal guarded(const std::string& who, const char* slot, Body&& body);

Refusal threw(const std::string& who, const char* slot, const char* what);

template <typename Body>
Refusal guarded(const std::string& who, const char* slot, Body&& body) {
  if (g_load_step != nullptr) g_load_step(slot);
  try {
    return body();
  } catch (const std::exception& e) {
    return threw(who, slot, e.what());
  } catch (...) {
    return threw(who, slot, nullptr);
  }
}

}  // namespace flhal
