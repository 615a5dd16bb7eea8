// src/core/bridge.h: one maker's stream waits for another maker's point.
//
// No chip understands another maker's event, so the host stands between: it waits for the point, then lets the stream go
// on. That is a host wait; it is counted, because a pipeline over two chips that stalls here should show it.
// The option with FLHAL_CAP_EVENT_HOST_SIGNAL (an event that the chip waits for and the service thread signals) replaces
// the body of bridge_wait() once the service thread polls; callers do not change.
#pragma once

#include "core/stream.h"

namespace flhal {

// Later work of `stream` starts after `point` of a device of another maker, or of one without chip-side waits.
Status bridge_wait(Stream* stream, Point point);

uint64_t bridge_host_waits();               // how often the host had to wait; for reports

}  // namespace flhal
