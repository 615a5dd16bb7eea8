// src/core/bridge.h: one maker's stream waits for another maker's point.
//
// No chip understands another maker's event. Three ways, best first:
//   the waiting stream has a worker            the worker waits, nobody else does
//   its chip takes signals from the host       the chip waits for an event that is signalled when the point is reached: by
//   (FLHAL_CAP_EVENT_HOST_SIGNAL)              the source's worker where it has one, else by the service thread
//   neither                                    the caller waits. It is counted, because a pipeline over two chips that
//                                              stalls here should show it
// The chip is not asked to wait at async level 0, where the call would wait at once, nor where the plugin takes one call at
// a time: a wait inside it would keep the signal out.
#pragma once

#include "core/stream.h"

namespace flhal {

// Later work of `stream` starts after `point` of a device of another maker, or of one without chip-side waits.
Status bridge_wait(Stream* stream, Point point);

uint64_t bridge_host_waits();               // how often the host had to wait; for reports
uint64_t bridge_signals();                  // how often a chip waited for a signal of ours

}  // namespace flhal
