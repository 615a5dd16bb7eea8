// conformance/mutants/mutant.h: what a wrong plugin is made of.
//
// libflhal_mutant.so loads a reference plugin (FLHAL_MUTANT_BASE), copies its tables, and lets one mutation (FLHAL_MUTANT)
// change the copy. A mutation replaces the slots it is about; everything else is the reference plugin's own code.
#pragma once

#include <flhal/plugin.h>

#include <functional>

namespace flhal::mutants {

extern const flhal_host_v1* host;            // core's functions
extern flhal_plugin_table_v1 base, table;    // the reference plugin's slots; ours
extern flhal_ops_v1 base_ops, ops;           // zero when the reference plugin has none
extern flhal_plugin_info_v1 info;            // what flhal_plugin_v1 answers
extern flhal_status (*before_entry)(const flhal_plugin_info_v1* out);   // each call of flhal_plugin_v1; may refuse
extern void (*after_entry)(flhal_plugin_info_v1* out);

bool add(const char* name, void (*apply)());
#define MUTATION(name)                                                      \
  static void name();                                                       \
  static const bool name##_added = ::flhal::mutants::add(#name, name);      \
  static void name()

// Leaves a sentence and gives the status back.
flhal_status refuse(flhal_status status, const char* text);

// Runs `work` when the stream gets there, on the reference plugin's own worker; `place` arrives as a host pointer. Only for
// plugins that take flhal-host-1. Calls of device_close have to go through forget_device().
flhal_status later(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, std::function<void(char*)> work);
void forget_device(flhal_p_device* device);

// A thread with all signals blocked, as a plugin's threads should be.
void start_thread(std::function<void()> work);

using Plugin = flhal_p_plugin*;
using Device = flhal_p_device*;
using Memory = flhal_p_memory*;
using Stream = flhal_p_stream*;
using Event = flhal_p_event*;
using Place = const flhal_p_place*;

}  // namespace flhal::mutants
