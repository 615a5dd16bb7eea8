// src/core/slot_watch.h: which slot of which plugin does not return? Off unless the setting slow_slot_s is above 0.
//
// Idea: a hang is mostly in a driver, and a stack of it says little. With the setting, each entry of core's private copy of
// a plugin's tables leads through a few lines that note slot, object and time in the calling thread's record; the service
// thread reads the records and logs a call that takes longer, once. Without it the tables are as they were: no cost.
#pragma once

#include "core/plugin_table.h"

namespace flhal {

void watch_slots(Plugin& plugin);           // before the first device of the plugin is opened; idempotent

}  // namespace flhal
