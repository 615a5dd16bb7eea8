// event.cc: points in queues, which the host and other queues wait for. driver: its own events.
//
// Idea: each record takes the event's next number, `armed`; the worker that comes to it stores the number in `done`. A wait takes
// the number of its moment, so a later record does not prolong it.
// Threads: plugin->mutex guards both.
#include <string>

#include "chip.h"

struct flhal_p_event {
  flhal_p_device* device;
  uint32_t flags;
  uint64_t armed = 0, done = 0;            // equal: nothing to wait for
  uint64_t time_ns = 0;                    // of `done`
  flhal_status outcome = FLHAL_OK;         // of all work in front of `done`

  std::mutex& mutex() { return device->plugin->mutex; }
  void check_not_the_hosts() const {
    if (flags & FLHAL_EVENT_HOST_SIGNALED) throw flhal::Error(FLHAL_E_INVALID, std::string(chip::kName) + ": event_record: the event is the host's to signal");
  }
};

namespace chip {

// With the mutex held.
static void reach(flhal_p_event* event, uint64_t number, flhal_status outcome) {
  if (number <= event->done) return;       // records of two streams: the later one came first
  event->done = number;
  event->outcome = outcome;
  event->time_ns = flhal::host->now_ns();
  event->device->plugin->changed.notify_all();
}

static flhal_status wait_for(flhal_p_event* event, std::unique_lock<std::mutex>& lock, uint64_t number) {
  event->device->plugin->changed.wait(lock, [&] { return event->done >= number; });
  return event->outcome;
}

static flhal_status told(flhal_status outcome) {
  if (outcome != FLHAL_OK) throw flhal::Error(outcome, std::string(kName) + ": work in front of the event failed");
  return FLHAL_OK;
}

// Slot 22. A host-signalled event is unfinished until event_signal; every other one is done until it is recorded.
flhal_status event_create(flhal_p_device* device, uint32_t flags, flhal_p_event** out) {
  *out = new flhal_p_event{device, flags, flags & FLHAL_EVENT_HOST_SIGNALED ? 1u : 0u};
  return FLHAL_OK;
}

// Slot 23. Nothing queued names it any more.
void event_destroy(flhal_p_event* event) { delete event; }

// Slot 24.
flhal_status event_record(flhal_p_event* event, flhal_p_stream* stream) {
  event->check_not_the_hosts();
  std::unique_lock lock(event->mutex());
  uint64_t number = ++event->armed;
  lock.unlock();
  return submit(stream, [=] {
    std::lock_guard inside(event->mutex());
    reach(event, number, stream != nullptr ? stream->failure : FLHAL_OK);
    return FLHAL_OK;
  });
}

// Slot 25. The stream waits, the caller does not (but for stream null, which means: now).
flhal_status event_wait(flhal_p_event* event, flhal_p_stream* stream) {
  std::unique_lock lock(event->mutex());
  uint64_t number = event->armed;
  lock.unlock();
  flhal_status status = submit(stream, [=] {
    std::unique_lock inside(event->mutex());
    return wait_for(event, inside, number);   // what failed in front of the event arrives in this stream, too
  });
  return stream == nullptr ? told(status) : status;
}

// Slot 26.
flhal_status event_query(flhal_p_event* event) {
  std::lock_guard lock(event->mutex());
  return event->done < event->armed ? FLHAL_NOT_READY : told(event->outcome);
}

// Slot 27.
flhal_status event_synchronize(flhal_p_event* event) {
  std::unique_lock lock(event->mutex());
  return told(wait_for(event, lock, event->armed));
}

// Slot 28.
flhal_status event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out) {
  if (!(from->flags & to->flags & FLHAL_EVENT_TIMING))
    throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": event_elapsed_ns: both events need FLHAL_EVENT_TIMING");
  std::lock_guard lock(from->mutex());
  if (from->armed == 0 || to->armed == 0)
    throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": event_elapsed_ns: record both events first");
  if (from->done < from->armed || to->done < to->armed) return FLHAL_NOT_READY;
  *out = to->time_ns > from->time_ns ? to->time_ns - from->time_ns : 0;
  return FLHAL_OK;
}

// Slot 29. Another maker's chip, or the host, has come to the point.
flhal_status event_signal(flhal_p_event* event, flhal_status status) {
  if (!(event->flags & FLHAL_EVENT_HOST_SIGNALED))
    throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": event_signal: the event was made without FLHAL_EVENT_HOST_SIGNALED");
  std::lock_guard lock(event->mutex());
  reach(event, 1, status);
  return FLHAL_OK;
}

}  // namespace chip
