// event.cc: re-recordable events, with times, and events that the host signals.
//
// Idea: each record takes a number (`armed`); the worker stores it in `done` when it gets there. A wait takes the number of
// that moment. The state is shared with queued work, so that a handle destroyed too early is counted, not fatal.
#include "mock.h"

namespace mock {
namespace {

using State = flhal_p_event::State;

void complete(State& state, uint64_t ticket, Outcome outcome) {
  std::lock_guard lock(state.mutex);
  if (ticket > state.done) {
    state.done = ticket;
    state.time_ns = now_ns();
    state.outcome = std::move(outcome);
  }
  state.changed.notify_all();
}

// Waits for a ticket; a lost device ends every wait.
Outcome wait_for(State& state, uint64_t ticket, const flhal_p_device* device) {
  std::unique_lock lock(state.mutex);
  while (state.done < ticket) {
    if (device->lost) return {FLHAL_E_DEVICE_LOST, "mock: the device was lost while it waited for an event"};
    state.changed.wait_for(lock, std::chrono::milliseconds(5));   // polls: losing a device has no list of waiters
  }
  return state.outcome;
}

// Threads: the stream's lock is not held. The failure of the stream so far is the point's outcome.
Outcome failure_so_far(flhal_p_stream* stream) {
  std::lock_guard lock(stream->mutex);
  return stream->first_failure;
}

}  // namespace

namespace slots {

flhal_status event_create(flhal_p_device* device, uint32_t flags, flhal_p_event** out) {
  if (flhal_status s = slot_begin(Slot::event_create, device->chip); s != FLHAL_OK) return s;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: event_create: the device is lost");
  if ((flags & FLHAL_EVENT_TIMING) && script().no_timing)
    return fail(FLHAL_E_UNSUPPORTED, "mock: event_create: this chip has no event times");
  auto* event = new flhal_p_event{device, flags};
  if (flags & FLHAL_EVENT_HOST_SIGNALED) event->state->armed = 1;   // pending until event_signal
  device->counts().live_events.fetch_add(1);
  *out = event;
  return FLHAL_OK;
}

void event_destroy(flhal_p_event* event) {
  {
    std::lock_guard lock(event->state->mutex);
    if (event->state->done < event->state->armed && !event->device->lost)
      misuse(event->device->chip, "event_destroy before its point was reached");
  }
  event->device->counts().live_events.fetch_sub(1);
  delete event;
}

flhal_status event_record(flhal_p_event* event, flhal_p_stream* stream) {
  flhal_p_device* device = event->device;
  if (flhal_status s = slot_begin(Slot::event_record, device->chip); s != FLHAL_OK) return s;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: event_record: the device is lost");
  if (event->flags & FLHAL_EVENT_HOST_SIGNALED)
    return fail(FLHAL_E_INVALID, "mock: event_record: the event is signalled by the host");
  uint64_t ticket;
  {
    std::lock_guard lock(event->state->mutex);
    ticket = ++event->state->armed;
    event->state->any_recorded = true;
  }
  device->counts().records.fetch_add(1, std::memory_order_relaxed);
  if (stream == nullptr) {
    complete(*event->state, ticket, {});
    return FLHAL_OK;
  }
  enqueue(stream, [state = event->state, ticket, stream]() -> Outcome {
    complete(*state, ticket, failure_so_far(stream));
    return {};
  });
  return FLHAL_OK;
}

flhal_status event_wait(flhal_p_event* event, flhal_p_stream* stream) {
  flhal_p_device* device = event->device;
  if (flhal_status s = slot_begin(Slot::event_wait, device->chip); s != FLHAL_OK) return s;
  uint64_t ticket;
  {
    std::lock_guard lock(event->state->mutex);
    ticket = event->state->armed;
  }
  device->counts().waits.fetch_add(1, std::memory_order_relaxed);
  if (stream == nullptr) {
    Outcome outcome = wait_for(*event->state, ticket, device);
    return outcome.code == FLHAL_OK ? FLHAL_OK : fail(outcome.code, outcome.text);
  }
  enqueue(stream, [state = event->state, ticket, waiter = stream->device]() -> Outcome {
    return wait_for(*state, ticket, waiter);   // a failure of the point arrives in the waiting stream
  });
  return FLHAL_OK;
}

flhal_status event_query(flhal_p_event* event) {
  if (flhal_status s = slot_begin(Slot::event_query, event->device->chip); s != FLHAL_OK) return s;
  if (event->device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: event_query: the device is lost");
  std::lock_guard lock(event->state->mutex);
  if (event->state->done < event->state->armed) return FLHAL_NOT_READY;
  const Outcome& outcome = event->state->outcome;
  return outcome.code == FLHAL_OK ? FLHAL_OK : fail(outcome.code, outcome.text);
}

flhal_status event_synchronize(flhal_p_event* event) {
  if (flhal_status s = slot_begin(Slot::event_synchronize, event->device->chip); s != FLHAL_OK) return s;
  uint64_t ticket;
  {
    std::lock_guard lock(event->state->mutex);
    ticket = event->state->armed;
  }
  Outcome outcome = wait_for(*event->state, ticket, event->device);
  return outcome.code == FLHAL_OK ? FLHAL_OK : fail(outcome.code, outcome.text);
}

flhal_status event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out) {
  if (flhal_status s = slot_begin(Slot::event_elapsed_ns, from->device->chip); s != FLHAL_OK) return s;
  if (!(from->flags & to->flags & FLHAL_EVENT_TIMING))
    return fail(FLHAL_E_INVALID, "mock: event_elapsed_ns: both events need FLHAL_EVENT_TIMING");
  uint64_t times[2];
  flhal_p_event* const events[2] = {from, to};
  for (int i = 0; i < 2; ++i) {
    std::lock_guard lock(events[i]->state->mutex);
    if (!events[i]->state->any_recorded) return fail(FLHAL_E_INVALID, "mock: event_elapsed_ns: an event was never recorded");
    if (events[i]->state->done < events[i]->state->armed) return FLHAL_NOT_READY;
    times[i] = events[i]->state->time_ns;
  }
  *out = times[1] > times[0] ? times[1] - times[0] : 0;
  return FLHAL_OK;
}

flhal_status event_signal(flhal_p_event* event, flhal_status status) {
  if (flhal_status s = slot_begin(Slot::event_signal, event->device->chip); s != FLHAL_OK) return s;
  if (!(event->flags & FLHAL_EVENT_HOST_SIGNALED))
    return fail(FLHAL_E_INVALID, "mock: event_signal: the event was made without FLHAL_EVENT_HOST_SIGNALED");
  complete(*event->state, 1, {status, status == FLHAL_OK ? "" : "mock: the host signalled a failure"});
  return FLHAL_OK;
}

}  // namespace slots
}  // namespace mock
