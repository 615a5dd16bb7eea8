// src/core/service.h: the one thread that core has for itself, for what nobody else is awake to do.
//
// It starts with the first request, never in a forked child, blocks all signals, and sleeps in libuv's loop when it has
// nothing to watch. It looks at points (a chip that waits for another maker's point is signalled by it) and, when that is set,
// at slots that do not return.
#pragma once

#include "core/stream.h"

namespace flhal {

// Calls then(context) on the service thread once `point` is reached; at once, in the caller, when there can be no thread.
void service_when_reached(Point point, void (*then)(void*), void* context);

// Calls look() on the service thread every `period_ms` from now on. One caller: slot_watch.
void service_every(uint64_t period_ms, void (*look)());

bool service_running();                     // for tests and reports

}  // namespace flhal
