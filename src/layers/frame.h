// src/layers/frame.h: the one set of wrappers around core's private copy of a plugin's tables, and the order of the layers.
//
// Idea: each plugin has a frame: its own slots, and for each slot a wrapper that turns the call into flat form and leads it
// through the layers that are on. Core's copy of the table points to the plugin's own slots while none is on, so off costs
// nothing, and to the wrappers while one is. The plugin sees nothing of it: closed ones work.
// Order, from core to the plugin: trace, stats, fault, validate. So a trace and the counts show what core saw, and validate
// judges the plugin's own answers only.
// Threads: the entries are changed while other threads call through them. Each is one aligned word whose old and new value are
// both functions that stay good for ever, and is read once per call: a call that began before the change ends as it began.
#pragma once

#include <cstdint>
#include <string>

#include "core/plugin_table.h"
#include "layers/slot_call.h"

namespace flhal {

// After a plugin's tables are filled and before its init.
void layers_attach(Plugin& plugin);
// It was refused after all, or another one has its id; nothing of it is running.
void layers_detach(Plugin& plugin);
// The setting slow_slot_s is on: slot_watch hears of every call from now on.
void layers_watch();

namespace layers {

// The bits of the setting `layers`, and slot_watch's.
inline constexpr uint32_t kValidate = 1, kTrace = 2, kFault = 4, kStats = 8, kWatch = 16;
inline constexpr int kFrames = 16;              // plugins beyond that are not wrapped, and the log says so

struct Frame {
  Plugin* plugin = nullptr;                     // nullptr: free
  int index = 0;
  std::string id;                               // stays when the plugin has gone, for reports
  flhal_plugin_table_v1 table{};                // the plugin's own slots
  flhal_ops_v1 ops{};
  bool wrapped = false;
  bool since_init = false;                      // validate was on before init and ever since: every handle is known
};
Frame& frame(int index);
int frames_used();
uint32_t layers_on();                           // bits

// Every layer's state is told before a frame's plugin changes.
void forget_frame(Frame& frame);

}  // namespace layers
}  // namespace flhal
