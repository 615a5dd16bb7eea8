// src/layers/stats.h: the layer that counts: per plugin and slot calls, failures, time and bytes.
//
// Threads: any; counters only. Cost: six additions to atomics of the slot.
#pragma once

#include <string>

#include "core/json_text.h"
#include "layers/slot_call.h"

namespace flhal::layers {

void stats_begin();                             // registers the table for the end of the process
void stats_after(const SlotCall& call);
void forget_stats(int frame);
void reset_stats();
void add_stats(cJSON* list);                    // a row per plugin and slot that was called, the longest in sum first
std::string stats_table();                      // the same as a table of text; "" when nothing was counted

}  // namespace flhal::layers
