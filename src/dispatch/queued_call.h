// src/dispatch/queued_call.h: a call of an op that waits for a stream's worker (async level 2).
//
// The caller has checked and planned it; a call that is refused never comes here. What a plan needs is copied into one
// piece of memory: operands, sizes, strides, attributes with what they point to, host scalars' bytes. Device memory is not
// held: freeing it is in stream order, and where it lies was found already (memory/kept_ranges.h).
// On the worker a plain plan (native, kernel) runs from the copy as it is. Everything else, and a plain plan that withdraws,
// goes through run_call on the inner stream, exactly as level 1 would.
#pragma once

#include "dispatch/plan.h"

namespace flhal {

// Queues `call` with its plan. `source` is the application's call that `call` was prepared from.
[[gnu::cold]] Status queue_call(Stream* stream, Plan* plan, const flhal_op_call_v1& call, const flhal_op_call& source);

}  // namespace flhal
