// src/core/probe_child.h: asks plugins in child processes, several at once, each with a time limit.
//
// Idea: a plugin that was never seen, or whose driver a fork would break, is opened by the small program flhal-probe. A
// crash, an exit or a hang there ends the child and becomes a sentence that names the step it was in.
// The child writes to a pipe of its own: lines "@<step>" before each step, then one line of JSON. What the plugin prints
// on standard error is kept for the sentence; standard output is dropped.
#pragma once

#include <string>
#include <vector>

#include "core/device_description.h"
#include "core/refusal.h"

namespace flhal {

struct ProbeTask {
  std::string library, expected_id;
  Refusal refusal;                 // out
  bool timed_out = false;          // out
  double milliseconds = 0;         // out
  PluginDescription description;   // out
};

// Where flhal-probe lies: FLHAL_PROBE_HELPER, beside libflhal, or in ../libexec/flhal, ../../libexec/flhal, ../bin. "" if nowhere.
std::string probe_helper();

// Runs all tasks, at most kProbesAtOnce together. Threads: the calling thread waits; no signal handler stays changed.
inline constexpr int kProbesAtOnce = 8;
void probe_in_children(const std::string& helper, uint64_t limit_ms, std::vector<ProbeTask>& tasks);

}  // namespace flhal
