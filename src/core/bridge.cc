// src/core/bridge.cc: waiting across makers; see bridge.h.
#include "core/bridge.h"

#include "core/event.h"
#include "core/log.h"
#include "core/service.h"
#include "core/worker.h"

namespace flhal {

static std::atomic<uint64_t> g_host_waits{0}, g_signals{0};

uint64_t bridge_host_waits() { return g_host_waits.load(std::memory_order_relaxed); }
uint64_t bridge_signals() { return g_signals.load(std::memory_order_relaxed); }

// The failure of `point` as that of a stream that waited for it; FLHAL_OK when there is none.
static flhal_status failure_for(Stream* stream, Point point, std::string* text) {
  flhal_status code = point.stream->failure_before(point.sequence, text);
  if (code == FLHAL_OK) return code;
  // A lost device is not this stream's device: for this stream it is work that failed.
  if (code == FLHAL_E_DEVICE_LOST && point.stream->device != stream->device) code = FLHAL_E_OP_FAILED;
  *text = fmt::format("stream {} of {} waited for stream {} of {}, which failed: {}", stream->id, stream->device->name,
                      point.stream->id, point.stream->device->name, *text);
  return code;
}

// The point has been reached: its failure becomes the stream's.
static Status take_failure(Stream* stream, Point point) {
  std::string text;
  flhal_status code = failure_for(stream, point, &text);
  if (code == FLHAL_OK) return FLHAL_OK;
  if (code != FLHAL_E_DEVICE_LOST) stream->poison(code, text, stream->here().sequence);
  return fail_text(code, std::move(text));
}

namespace {

// On the waiting stream's worker.
struct WaitForPoint final : Work {
  WaitForPoint(Stream* stream, Point point) : Work("event wait"), stream(stream), point(point) {}
  Status run(Stream*) override {
    (void)point.stream->wait_for(point.sequence);
    std::string text;
    flhal_status code = failure_for(stream, point, &text);
    if (code != FLHAL_OK && code != FLHAL_E_DEVICE_LOST) stream->poison(code, std::move(text), stream->here().sequence);
    return FLHAL_OK;                        // the poison says it already, without the sentence about late refusals
  }
  Stream* const stream;
  const Point point;
};

// What signals a chip that waits. Holds a reference to the event.
struct Signal {
  Stream* stream;                           // the waiting one
  Point point;
  PluginEvent* event;

  static void ring(void* self) {
    std::unique_ptr<Signal> s(static_cast<Signal*>(self));
    if (s->point.stream->asynchronous) (void)s->point.stream->query();   // its failure may not have been seen by anybody yet
    std::string text;
    flhal_status code = failure_for(s->stream, s->point, &text);
    if (code != FLHAL_OK) s->stream->poison(code == FLHAL_E_DEVICE_LOST ? FLHAL_E_OP_FAILED : code, std::move(text));
    {
      std::lock_guard lock(s->event->family->mutex);   // close_streams takes the handle away under it
      if (s->event->handle) (void)plugin_call(s->stream->device->plugin->table.event_signal, s->event->handle, code);
    }
    drop(s->event);
  }
};

struct RingFromWorker final : Work {
  explicit RingFromWorker(Signal* signal) : Work("event signal"), signal(signal) {}
  ~RingFromWorker() override {
    if (signal) Signal::ring(signal);       // never run: the chip must not wait for ever
  }
  Status run(Stream*) override {
    Signal::ring(std::exchange(signal, nullptr));
    return FLHAL_OK;
  }
  bool always() const override { return true; }
  Signal* signal;
};

bool chip_can_wait(const Stream* stream) {
  return stream->asynchronous && stream->device->has(FLHAL_CAP_EVENT_HOST_SIGNAL) && !stream->device->plugin->serialize_all &&
         config().async_level.load(std::memory_order_relaxed) != 0;
}

// FLHAL_DECLINED: the plugin gives no such event after all.
Status wait_for_signal(Stream* stream, Point point) {
  Result<PluginEvent*> made = take_plugin_event(family_of(stream->device), FLHAL_EVENT_HOST_SIGNALED);
  if (!made.ok()) {
    log(kLogDebug, "{}: no host-signalled event: {}", stream->device->name, last_error_text());
    return FLHAL_DECLINED;
  }
  PluginEvent* event = *made;
  auto signal = std::make_unique<Signal>(Signal{stream, point, event});
  Status queued = stream->wait_on_chip(event, point);
  if (!queued.ok()) {
    drop(event);
    return queued;
  }
  g_signals.fetch_add(1, std::memory_order_relaxed);
  std::unique_ptr<Work> ring = std::make_unique<RingFromWorker>(signal.release());
  if (point.stream->queue_always(ring)) return FLHAL_OK;
  auto* left = static_cast<RingFromWorker*>(ring.get());
  service_when_reached(point, Signal::ring, std::exchange(left->signal, nullptr));
  return FLHAL_OK;
}

}  // namespace

Status bridge_wait(Stream* stream, Point point) {
  if (point.stream->reached(point.sequence)) {
    (void)point.stream->wait_for(point.sequence);   // reached: only looks for its failure, and for that of what it relied on
    return take_failure(stream, point);
  }
  if (stream->queues_calls()) return stream->queue(std::make_unique<WaitForPoint>(stream, point));
  if (chip_can_wait(stream)) {
    Status queued = wait_for_signal(stream, point);
    if (queued.code() != FLHAL_DECLINED) return queued;
  }
  g_host_waits.fetch_add(1, std::memory_order_relaxed);
  (void)point.stream->wait_for(point.sequence);
  return take_failure(stream, point);
}

}  // namespace flhal
