// src/core/bridge.cc: waiting across makers through the host; see bridge.h.
#include "core/bridge.h"

namespace flhal {

static std::atomic<uint64_t> g_host_waits{0};

uint64_t bridge_host_waits() { return g_host_waits.load(std::memory_order_relaxed); }

Status bridge_wait(Stream* stream, Point point) {
  if (!point.stream->reached(point.sequence)) {
    g_host_waits.fetch_add(1, std::memory_order_relaxed);
    (void)point.stream->wait_for(point.sequence);
  }
  std::string text;
  flhal_status code = point.stream->failure_before(point.sequence, &text);
  if (code == FLHAL_OK) return FLHAL_OK;
  // A lost device is not this stream's device: for this stream it is work that failed.
  if (code == FLHAL_E_DEVICE_LOST && point.stream->device != stream->device) code = FLHAL_E_OP_FAILED;
  text = fmt::format("stream {} of {} waited for stream {} of {}, which failed: {}", stream->id, stream->device->name,
                     point.stream->id, point.stream->device->name, text);
  if (code != FLHAL_E_DEVICE_LOST) stream->poison(code, text, stream->here().sequence);
  return fail_text(code, std::move(text));
}

}  // namespace flhal
