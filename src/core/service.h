// src/core/service.h: the one thread that core has for itself, for what nobody else is awake to do.
//
// It starts with the first request, never in a forked child, blocks all signals, and sleeps in libuv's loop when it has
// nothing to watch. It looks at points (a chip that waits for another maker's point is signalled by it) and, once a second
// while it has anything to look at, at calls that take too long.
#pragma once

#include "core/stream.h"

namespace flhal {

// Calls then(context) on the service thread once `point` is reached; at once, in the caller, when there can be no thread.
void service_when_reached(Point point, void (*then)(void*), void* context);

bool service_running();                     // for tests and reports

}  // namespace flhal
