// src/core/slot_watch.h: which slot of which plugin does not return? Off unless the setting slow_slot_s is above 0.
//
// Idea: a hang is mostly in a driver, and a stack of it says little. With the setting, calls lead through the wrappers of the layers
// (layers/frame.h), which note slot, object and time in the calling thread's record; the service thread reads the records and
// logs a call that takes longer, once. Without it the tables are as they were: no cost.
#pragma once

#include "core/plugin_table.h"

namespace flhal {

void watch_slots();                         // before the first device is opened; idempotent

// For the wrappers: a call begins and ends on this thread.
struct SlotRecord;
SlotRecord* watch_enter(const Plugin* plugin, const char* slot, const void* object);
void watch_leave(SlotRecord* record);

}  // namespace flhal
