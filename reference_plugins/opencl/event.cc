// reference_plugins/opencl/event.cc: events of streams, timed ones, and ones that the host signals.
//
// A plain event is a reference to the stream's last command: recording queues nothing. A timed one is a marker behind it, in
// a second queue of the stream that has profiling: so only timed events pay for time stamps (20 % of a small launch on PoCL),
// and the marker is the event's point, so that whoever sees it finished finds its time.
// Devices have contexts of their own, so a wait for another device's event goes over a user event that the driver's callback
// completes: the host waits nowhere.
#include <fmt/format.h>

#include "opencl_plugin.h"
#include "surroundings.h"

namespace flhal::opencl {
namespace {

// Completes a signal, once; later outcomes are without effect.
bool complete(Signal& signal, flhal_status outcome) {
  flhal_status pending = FLHAL_NOT_READY;
  if (!signal.outcome.compare_exchange_strong(pending, outcome == FLHAL_NOT_READY ? FLHAL_OK : outcome, std::memory_order_acq_rel)) return false;
  cl.clSetUserEventStatus(signal.event.get(), CL_COMPLETE);
  return true;
}

std::shared_ptr<Signal> make_signal(cl_context context, cl_int* code) {
  cl_event event = cl.clCreateUserEvent(context, code);
  if (!event) return nullptr;
  auto signal = std::make_shared<Signal>();
  signal->event = Event(event);
  return signal;
}

// A marker with a time stamp behind `after` (none: at once).
flhal_status timed_marker(cl_command_queue clock, const Event& after, Event* out) {
  cl_event behind = after.get(), marker = nullptr;
  cl_int code = cl.clEnqueueMarkerWithWaitList(clock, behind ? 1 : 0, behind ? &behind : nullptr, &marker);
  if (code != CL_SUCCESS) return fail_code(code, "event_record", "clEnqueueMarkerWithWaitList");
  *out = Event(marker);
  code = cl.clFlush(clock);
  return code == CL_SUCCESS ? FLHAL_OK : fail_code(code, "event_record", "clFlush");
}

flhal_status make_clock(flhal_p_device* device, cl_command_queue* out) {
  KeepSurroundings keep;
  cl_int code = CL_SUCCESS;
  *out = cl.clCreateCommandQueue(device->context, device->chip->device, CL_QUEUE_PROFILING_ENABLE, &code);
  return *out ? FLHAL_OK : fail_code(code, "event_record", "clCreateCommandQueue with profiling");
}

flhal_status record_timed(flhal_p_event* event, flhal_p_stream* stream, Event* point) {
  if (stream) {
    if (!stream->clock)
      if (flhal_status s = make_clock(event->device, &stream->clock); s != FLHAL_OK) return s;
    flhal_status answer = timed_marker(stream->clock, stream->tail, point);
    if (answer == FLHAL_OK) stream->stamp = *point;
    return answer;
  }
  cl_command_queue once = nullptr;
  if (flhal_status s = make_clock(event->device, &once); s != FLHAL_OK) return s;
  flhal_status answer = timed_marker(once, Event(), point);
  cl.clFinish(once);
  cl.clReleaseCommandQueue(once);
  return answer;
}

// The queue goes on behind `point`.
flhal_status barrier(flhal_p_stream* stream, cl_event point) {
  cl_event event = nullptr;
  cl_int code = cl.clEnqueueBarrierWithWaitList(stream->queue, 1, &point, &event);
  return queued(stream, code, event, "event_wait", "clEnqueueBarrierWithWaitList", true);
}

void CL_CALLBACK reached_elsewhere(cl_event, cl_int state, void* data) {
  std::unique_ptr<std::shared_ptr<Signal>> signal(static_cast<std::shared_ptr<Signal>*>(data));
  complete(**signal, state < 0 ? FLHAL_E_OP_FAILED : FLHAL_OK);
}

flhal_status wait_across(flhal_p_stream* stream, const Event& point) {
  cl_int code = CL_SUCCESS;
  std::shared_ptr<Signal> bridge = make_signal(stream->device->context, &code);
  if (!bridge) return fail_code(code, "event_wait", "clCreateUserEvent");
  auto data = std::make_unique<std::shared_ptr<Signal>>(bridge);
  code = cl.clSetEventCallback(point.get(), CL_COMPLETE, reached_elsewhere, data.get());
  if (code != CL_SUCCESS) return fail_code(code, "event_wait", "clSetEventCallback");
  (void)data.release();   // the callback's
  stream->watched.push_back(bridge);
  return barrier(stream, bridge->event.get());
}

struct Now {
  Event point;
  std::shared_ptr<Signal> signal;
  SignalsBehind behind;
};
Now content(flhal_p_event* event) {
  std::lock_guard lock(event->mutex);
  return {event->signal ? event->signal->event : event->point, event->signal, event->behind};
}

flhal_status outcome_of(const Signal& signal, const char* slot) {
  flhal_status outcome = signal.outcome.load(std::memory_order_acquire);
  return outcome < 0 ? fail(outcome, std::string(slot) + ": the host signalled a failure") : outcome;
}

// Of an event whose point is reached: so are all signals before it.
flhal_status outcome_of(const SignalsBehind& behind, const char* slot) {
  flhal_status failure = behind.outcome();
  return failure == FLHAL_OK ? FLHAL_OK : fail(failure, std::string(slot) + ": an event that its stream waited for before was signalled as failed");
}

}  // namespace

flhal_status SignalsBehind::outcome() const {
  if (failure != FLHAL_OK) return failure;
  for (const std::shared_ptr<Signal>& signal : open)
    if (flhal_status outcome = signal->outcome.load(std::memory_order_acquire); outcome < 0) return outcome;
  return FLHAL_OK;
}

namespace slots {

flhal_status event_create(flhal_p_device* device, uint32_t flags, flhal_p_event** out) {
  return no_throw("event_create", [&]() -> flhal_status {
    auto event = std::make_unique<flhal_p_event>();
    event->device = device;
    event->flags = flags;
    if (flags & FLHAL_EVENT_HOST_SIGNALED) {
      cl_int code = CL_SUCCESS;
      event->signal = make_signal(device->context, &code);
      if (!event->signal) return fail_code(code, "event_create", "clCreateUserEvent");
    }
    *out = event.release();
    return FLHAL_OK;
  });
}

void event_destroy(flhal_p_event* event) {
  if (event->signal) complete(*event->signal, FLHAL_E_OP_FAILED);   // or whoever waits for it waits for ever
  delete event;
}

flhal_status event_record(flhal_p_event* event, flhal_p_stream* stream) {
  if (event->signal) return fail(FLHAL_E_INVALID, "event_record: the event is signalled by the host; record another one");
  return no_throw("event_record", [&]() -> flhal_status {
    if (stream)
      if (flhal_status s = tail_of(stream, "event_record"); s != FLHAL_OK) return s;
    if (stream && stream->unflushed != 0) {   // others will wait for this point without asking us
      stream->unflushed = 0;
      if (cl_int code = cl.clFlush(stream->queue); code != CL_SUCCESS) return fail_code(code, "event_record", "clFlush");
    }
    Event point = stream ? stream->tail : Event();
    if (event->flags & FLHAL_EVENT_TIMING)
      if (flhal_status s = record_timed(event, stream, &point); s != FLHAL_OK) return s;
    SignalsBehind behind;
    if (stream) {
      if (!stream->watched.empty()) look_at_signals(stream);
      behind = {stream->watched, stream->failure};
    }
    std::lock_guard lock(event->mutex);
    event->point = std::move(point);
    event->behind = std::move(behind);
    return FLHAL_OK;
  });
}

flhal_status event_wait(flhal_p_event* event, flhal_p_stream* stream) {
  if (stream == nullptr) return event_synchronize(event);
  return no_throw("event_wait", [&]() -> flhal_status {
    Now now = content(event);
    if (!now.point) return FLHAL_OK;
    if (stream->watched.size() > 16) look_at_signals(stream);
    if (now.signal) stream->watched.push_back(now.signal);
    for (std::shared_ptr<Signal>& signal : now.behind.open) stream->watched.push_back(std::move(signal));
    if (stream->failure == FLHAL_OK) stream->failure = now.behind.failure;
    if (stream->device == event->device) return barrier(stream, now.point.get());
    return wait_across(stream, now.point);
  });
}

flhal_status event_query(flhal_p_event* event) {
  Now now = content(event);
  if (now.signal) return outcome_of(*now.signal, "event_query");
  flhal_status state = now.point ? state_of(now.point.get(), "event_query") : FLHAL_OK;
  return state == FLHAL_OK ? outcome_of(now.behind, "event_query") : state;
}

flhal_status event_synchronize(flhal_p_event* event) {
  Now now = content(event);
  if (!now.point) return FLHAL_OK;
  cl_event point = now.point.get();
  cl_int code = cl.clWaitForEvents(1, &point);
  if (now.signal) return outcome_of(*now.signal, "event_synchronize");
  if (code == CL_SUCCESS) return outcome_of(now.behind, "event_synchronize");
  flhal_status state = state_of(point, "event_synchronize");
  return state < 0 ? state : fail_code(code, "event_synchronize", "clWaitForEvents");
}

flhal_status event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out) {
  if (!(from->flags & to->flags & FLHAL_EVENT_TIMING)) return fail(FLHAL_E_INVALID, "event_elapsed_ns: both events need FLHAL_EVENT_TIMING");
  cl_ulong times[2];
  flhal_p_event* const events[2] = {from, to};
  for (int i = 0; i < 2; ++i) {
    Now now = content(events[i]);
    if (!now.point) return fail(FLHAL_E_INVALID, fmt::format("event_elapsed_ns: the {} event was never recorded", i ? "second" : "first"));
    if (flhal_status state = state_of(now.point.get(), "event_elapsed_ns"); state != FLHAL_OK) return state;
    cl_int code = cl.clGetEventProfilingInfo(now.point.get(), CL_PROFILING_COMMAND_END, sizeof times[i], &times[i], nullptr);
    if (code != CL_SUCCESS) return fail_code(code, "event_elapsed_ns", "clGetEventProfilingInfo");
  }
  *out = times[1] > times[0] ? times[1] - times[0] : 0;
  return FLHAL_OK;
}

flhal_status event_signal(flhal_p_event* event, flhal_status status) {
  if (!event->signal) return fail(FLHAL_E_INVALID, "event_signal: the event was made without FLHAL_EVENT_HOST_SIGNALED");
  if (!complete(*event->signal, status)) return fail(FLHAL_E_INVALID, "event_signal: the event was signalled before; each one is good for once");
  return FLHAL_OK;
}

}  // namespace slots
}  // namespace flhal::opencl
