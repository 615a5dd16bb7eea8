// reference_plugins/opencl/stream.cc: streams are in-order queues; see opencl_plugin.h for `tail`.
//
// Flushing: a driver may collect commands until it is asked to start. Copies, records and queries start them at once,
// launches every kFlushEvery, so a long series of launches runs while it is still being issued.
// Priorities are ignored: a hint for them exists as an extension that no driver here has.
#include "opencl_plugin.h"
#include "surroundings.h"

namespace flhal::opencl {

flhal_status state_of(cl_event event, const char* slot) {
  cl_int state = CL_COMPLETE;
  cl_int code = cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  if (code != CL_SUCCESS) return fail_code(code, slot, "clGetEventInfo");
  if (state == CL_COMPLETE) return FLHAL_OK;
  return state > 0 ? FLHAL_NOT_READY : fail_code(state, slot, "a queued command");
}

static flhal_status flush(flhal_p_stream* stream, const char* slot) {
  stream->unflushed = 0;
  cl_int code = cl.clFlush(stream->queue);
  return code == CL_SUCCESS ? FLHAL_OK : fail_code(code, slot, "clFlush");
}

flhal_status queued(flhal_p_stream* stream, cl_int code, cl_event event, const char* slot, const char* call, bool flush_now) {
  if (__builtin_expect(code != CL_SUCCESS, 0)) return fail_code(code, slot, call);
  if (stream == nullptr) {
    Event owned(event);
    code = cl.clWaitForEvents(1, &event);
    if (code == CL_SUCCESS) return FLHAL_OK;
    flhal_status state = state_of(event, slot);   // the command's own code says more
    return state < 0 ? state : fail_code(code, slot, "clWaitForEvents");
  }
  if (event) {
    stream->tail = Event(event);
    stream->stale = false;
  } else {
    stream->stale = true;
  }
  if (flush_now || ++stream->unflushed >= kFlushEvery) return flush(stream, slot);
  return FLHAL_OK;
}

flhal_status tail_of(flhal_p_stream* stream, const char* slot) {
  stream->eager = kEagerLaunches;
  if (!stream->stale) return FLHAL_OK;
  cl_event marker = nullptr;
  cl_int code = cl.clEnqueueMarkerWithWaitList(stream->queue, 0, nullptr, &marker);
  return queued(stream, code, marker, slot, "clEnqueueMarkerWithWaitList", true);
}

void look_at_signals(flhal_p_stream* stream) {
  std::erase_if(stream->watched, [&](const std::shared_ptr<Signal>& signal) {
    flhal_status outcome = signal->outcome.load(std::memory_order_acquire);
    if (outcome < 0 && stream->failure == FLHAL_OK) stream->failure = outcome;
    return outcome != FLHAL_NOT_READY;
  });
}

static flhal_status failure_of_signals(flhal_p_stream* stream, const char* slot) {
  if (stream->failure == FLHAL_OK) return FLHAL_OK;
  return fail(stream->failure, std::string(slot) + ": an event this stream waited for was signalled as failed");
}

namespace slots {

flhal_status stream_create(flhal_p_device* device, int32_t, uint32_t, flhal_p_stream** out) {
  return no_throw("stream_create", [&]() -> flhal_status {
    KeepSurroundings keep;
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = cl.clCreateCommandQueue(device->context, device->chip->device, 0, &code);
    if (!queue) return fail_code(code, "stream_create", "clCreateCommandQueue");
    *out = new flhal_p_stream{device, queue};
    return FLHAL_OK;
  });
}

void stream_destroy(flhal_p_stream* stream) {
  stream->tail = Event();
  stream->stamp = Event();
  if (stream->clock) cl.clReleaseCommandQueue(stream->clock);
  cl.clReleaseCommandQueue(stream->queue);
  delete stream;
}

flhal_status stream_query(flhal_p_stream* stream) {
  if (flhal_status answer = tail_of(stream, "stream_query"); answer != FLHAL_OK) return answer;
  if (stream->unflushed != 0)
    if (flhal_status answer = flush(stream, "stream_query"); answer != FLHAL_OK) return answer;
  if (!stream->watched.empty()) look_at_signals(stream);
  if (flhal_status failed = failure_of_signals(stream, "stream_query"); failed != FLHAL_OK) return failed;
  flhal_status state = stream->tail ? state_of(stream->tail.get(), "stream_query") : FLHAL_OK;
  if (state != FLHAL_OK || !stream->stamp) return state;
  state = state_of(stream->stamp.get(), "stream_query");   // an idle stream has its times
  if (state != FLHAL_NOT_READY) stream->stamp = Event();
  return state;
}

flhal_status stream_synchronize(flhal_p_stream* stream) {
  stream->unflushed = 0;
  cl_int code = cl.clFinish(stream->queue);
  if (code != CL_SUCCESS) return fail_code(code, "stream_synchronize", "clFinish");
  if (stream->stamp) {
    stream->stamp = Event();
    if (code = cl.clFinish(stream->clock); code != CL_SUCCESS) return fail_code(code, "stream_synchronize", "clFinish of the time stamps");
  }
  if (!stream->watched.empty()) look_at_signals(stream);
  flhal_status failed = failure_of_signals(stream, "stream_synchronize");
  stream->failure = FLHAL_OK;   // told once
  if (failed != FLHAL_OK) return failed;
  flhal_status state = stream->tail && !stream->stale ? state_of(stream->tail.get(), "stream_synchronize") : FLHAL_OK;
  return state < 0 ? state : FLHAL_OK;
}

}  // namespace slots
}  // namespace flhal::opencl
