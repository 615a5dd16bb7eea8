// src/layers/validate.h: the layer that checks: what core gives a plugin, and what the plugin answers.
//
// It changes nothing that happens: it only tells (findings.h, the log, the report "layers").
// In order of a call: validate_before (handles, ranges, two calls at once), the plugin's slot, validate_after (the answer, what
// was given, missing waits). Checks that hold for every slot are made from the kinds of its parameters (validate.cc); those of one
// slot are in validate_arguments.cc, validate_answers.cc and validate_device.cc.
// Threads: one lock for all it knows, not held while the plugin runs.
#pragma once

#include <memory>

#include "layers/slot_call.h"
#include "layers/surroundings.h"

namespace flhal::layers {

struct Guards;                           // validate_guards.h: output structs with a watch behind them
struct GuardsDeleter { void operator()(Guards* guards) const; };

// What the part before the call leaves for the part after it.
struct ValidateCall {
  uint64_t texts_left = 0;               // how often this thread had called set_error
  uint64_t slept = 0;
  const void* handle_before = nullptr;   // what lay where the slot puts its handle
  uint64_t submitted = 0;                // of the stream that the call is about
  uint64_t idle_at = 0;                  // of the event's stream
  SlotId idle_by = SlotId::kCount;
  unsigned floating_point = 0;
  bool measured = false, entered = false, event_said_done = false;
  bool recorded = false;                 // of the event, at the beginning of the call
  std::unique_ptr<Surroundings> around;
  std::unique_ptr<Guards, GuardsDeleter> guards;
};

void validate_begins();                  // it is turned on; what exists already is not known
void validate_before(SlotCall& call, ValidateCall& checked);
void validate_after(SlotCall& call, ValidateCall& checked);
void validate_threw(SlotCall& call, ValidateCall& checked);
void validate_injected(const SlotCall& call);   // the layer fault answered for the plugin: nothing is known of the work any more
void forget_validation(int frame);

}  // namespace flhal::layers
