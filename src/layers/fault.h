// src/layers/fault.h: the layer that makes things go wrong on purpose, by the rules of the setting `faults`.
//
//   fail=[plugin/]slot:n[:status]       the n-th call answers status (E_OP_FAILED) and does not reach the plugin
//   delay=[plugin/]slot:n:ms            the n-th call begins so much later
//   reorder=seed[:ms]                   each recorded event is told late, by a random time up to ms (2): to the host the streams end in
//                                       another order; never early, so every order that is seen is a legal one
//   lose=n[@plugin[:index]]             after n submissions the device answers E_DEVICE_LOST until it is closed
// Counts are per rule and begin with the rule. Threads: any.
#pragma once

#include <vector>

#include "core/json_text.h"
#include "layers/rules.h"
#include "layers/slot_call.h"

namespace flhal::layers {

void set_faults(std::vector<FaultRule> rules);   // the same texts as before: counts go on
void fault_before(SlotCall& call);               // may sleep; may answer: call.injected
void fault_after(SlotCall& call);                // may change the answer of a query
void forget_faults(int frame);
void add_faults(cJSON* list);                    // per rule: calls looked at, times it struck

}  // namespace flhal::layers
