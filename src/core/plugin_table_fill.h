// src/core/plugin_table_fill.h: how the loader fills core's private copy of a plugin's tables.
#pragma once

#include "core/plugin_table.h"
#include "core/refusal.h"

namespace flhal {

// Checks size, type, extensions, required slots and all-or-none groups; copies; stubs what is missing; sets has_*.
Refusal fill_table(Plugin& plugin, const flhal_plugin_table_v1* theirs, bool plugin_is_newer);
// The same for the optional table "ops"; nullptr: the plugin has none.
Refusal fill_ops(Plugin& plugin, const void* theirs, bool plugin_is_newer);
// Puts a stub wherever a slot is null: a plugin that is known but not loaded yet has only stubs.
void fill_stubs(Plugin& plugin);

}  // namespace flhal
