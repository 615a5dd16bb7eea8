// reference_plugins/opencl/opencl_plugin.h: the plugin's own objects, and which file implements which slots.
//
//   plugin.cc   the exported symbol, tables, init, shutdown      device.cc   counting, info, open, close, budget
//   memory.cc   slabs, host views                                copy.cc     copies and fills
//   stream.cc   queues                                           event.cc    events, also host-signalled ones
//   module.cc   programs, their binaries, kernels                launch.cc   arguments and launches
//   chips.cc    what the loader shows      cl.cc  the loader     code.cc     OpenCL's codes      icd_files.cc  broken drivers
//
// Idea: one context per device, so that a chip that fails takes no other one along. A stream is an in-order queue and the
// event of its last command (`tail`): recording an event costs one reference, mostly no marker in the queue.
// Threads: any slot from any thread; core never calls two slots with one stream at once, so streams have no lock.
#pragma once

#include <flhal/plugin.h>
#include <flhal/x_module_binary.h>

#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "chips.h"
#include "cl.h"
#include "code.h"

namespace flhal::opencl {

// A reference to an object of OpenCL.
class Event {
 public:
  Event() = default;
  explicit Event(cl_event owned) : event_(owned) {}
  Event(const Event& other) : event_(other.event_) {
    if (event_) cl.clRetainEvent(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) cl.clReleaseEvent(event_);
  }
  cl_event get() const { return event_; }
  explicit operator bool() const { return event_ != nullptr; }

 private:
  cl_event event_ = nullptr;
};

// Something the host, or a callback of a driver, completes. Queues go on in any case; a failure is carried beside, because
// what drivers do with the commands behind a failed event differs.
struct Signal {
  Event event;                                       // a user event
  std::atomic<flhal_status> outcome{FLHAL_NOT_READY};
};

// The signals that stand before a point of a stream, which has their failure.
struct SignalsBehind {
  std::vector<std::shared_ptr<Signal>> open;         // not known when the point was recorded
  flhal_status failure = FLHAL_OK;                   // of those that were
  flhal_status outcome() const;                      // FLHAL_OK, or the failure by now
};

}  // namespace flhal::opencl

struct flhal_p_plugin {
  std::deque<flhal::opencl::Chip> chips;
};

struct flhal_p_device {
  const flhal::opencl::Chip* chip;
  cl_context context;
  cl_command_queue immediate;                        // for calls without a stream; each waits for its own command
  std::atomic<uint64_t> used_bytes{0};
};

struct flhal_p_memory {
  flhal_p_device* device;
  uint32_t kind;
  uint64_t bytes, taken_bytes;                       // as asked; as taken from the driver
  uint64_t charged_bytes;                            // counted against the chip's memory
  char* address = nullptr;                           // SVM, or the host's view of pinned memory; else nullptr
  void* svm = nullptr;                               // what clSVMAlloc gave: `address` begins at a granule within it
  cl_mem buffer = nullptr;                           // slabs without SVM; pinned memory
  std::mutex mutex;                                  // guards what follows
  cl_mem rectangles = nullptr;                       // the SVM as a buffer: SVM has no copies of rectangles
  std::map<uint64_t, cl_mem> parts;                  // sub-buffers by offset, for launches that want one
};

struct flhal_p_stream {
  flhal_p_device* device;
  cl_command_queue queue;
  cl_command_queue clock = nullptr;                  // with profiling, made at the first timed event: see event.cc
  flhal::opencl::Event stamp;                        // the last marker in `clock`; none when it is known to have ended
  flhal::opencl::Event tail;                         // of the last command; none before the first. Stale: see `stale`
  bool stale = false;                                // launches without an event came behind `tail`
  uint32_t eager = 0;                                // so many of the next launches ask for their event
  uint32_t unflushed = 0;                            // commands since clFlush
  std::vector<std::shared_ptr<flhal::opencl::Signal>> watched;   // signals this stream waits for, until they are known
  flhal_status failure = FLHAL_OK;                   // of a signal, until stream_synchronize has told it. See SignalsBehind
};

struct flhal_p_event {
  flhal_p_device* device;
  uint32_t flags;
  std::mutex mutex;                                  // guards what a record writes: other threads may ask meanwhile
  flhal::opencl::Event point;                        // none: never recorded, or nothing was queued before
  flhal::opencl::SignalsBehind behind;
  std::shared_ptr<flhal::opencl::Signal> signal;     // FLHAL_EVENT_HOST_SIGNALED
};

namespace flhal::opencl {

// What a slot does, with exceptions turned into a status: none may cross the boundary.
template <class Body>
flhal_status no_throw(const char* slot, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    return fail(FLHAL_E_HOST_MEMORY, std::string(slot) + ": " + e.what());
  }
}

inline cl_command_queue queue_of(flhal_p_device* device, flhal_p_stream* stream) { return stream ? stream->queue : device->immediate; }

// What follows each command: `code` is its answer, `event` its event. Without a stream: waits.
flhal_status queued(flhal_p_stream* stream, cl_int code, cl_event event, const char* slot, const char* call, bool flush_now);

// The event of the last command: `tail`, behind a marker where launches went without one. Launches that follow ask for theirs:
// a stream that is asked after each few launches never needs a marker, a long series pays for no events.
flhal_status tail_of(flhal_p_stream* stream, const char* slot);
constexpr uint32_t kEagerLaunches = 16;

constexpr uint32_t kFlushEvery = 16;   // launches: a driver that collects commands must not collect for ever

// The status an event has, and the failure it stands for. NOT_READY while it runs.
flhal_status state_of(cl_event event, const char* slot);

// stream.cc: the failures of signals that are known by now.
void look_at_signals(flhal_p_stream* stream);

// memory.cc: what is at a place, for copies.
inline char* pointer_to(const flhal_p_place& place) {
  if (place.memory == nullptr) return static_cast<char*>(place.host);
  return place.memory->address ? place.memory->address + place.offset : nullptr;   // nullptr: a buffer without address
}
cl_mem buffer_for_rectangles(flhal_p_memory* memory, cl_int* code);
// The sub-buffer that begins at `offset`; kept with the slab.
cl_mem part_of(flhal_p_memory* memory, uint64_t offset, cl_int* code);

// The optional table "x.module_binary".
const void* module_binary_table();

// Slots, by file. They have the table's names.
namespace slots {
flhal_status device_count(flhal_p_plugin*, uint32_t*);
flhal_status device_info(flhal_p_plugin*, uint32_t, flhal_p_device_info_v1*);
flhal_status device_open(flhal_p_plugin*, uint32_t, flhal_p_device**);
void device_close(flhal_p_device*);
flhal_status memory_budget(flhal_p_device*, uint64_t*, uint64_t*);
flhal_status memory_alloc(flhal_p_device*, flhal_p_slab_v1*);
void memory_free(flhal_p_device*, flhal_p_memory*);
flhal_status host_begin(flhal_p_device*, const flhal_p_place*, uint64_t, uint32_t, void**);
flhal_status host_end(flhal_p_device*, const flhal_p_place*, uint64_t, uint32_t, void*);
flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*);
flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t, const void*, uint32_t);
flhal_status module_load(flhal_p_device*, const flhal_p_source_v1*, flhal_p_module**);
void module_unload(flhal_p_module*);
flhal_status function_get(flhal_p_module*, const char*, flhal_p_function**);
flhal_status launch(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*);
flhal_status stream_create(flhal_p_device*, int32_t, uint32_t, flhal_p_stream**);
void stream_destroy(flhal_p_stream*);
flhal_status stream_query(flhal_p_stream*);
flhal_status stream_synchronize(flhal_p_stream*);
flhal_status event_create(flhal_p_device*, uint32_t, flhal_p_event**);
void event_destroy(flhal_p_event*);
flhal_status event_record(flhal_p_event*, flhal_p_stream*);
flhal_status event_wait(flhal_p_event*, flhal_p_stream*);
flhal_status event_query(flhal_p_event*);
flhal_status event_synchronize(flhal_p_event*);
flhal_status event_elapsed_ns(flhal_p_event*, flhal_p_event*, uint64_t*);
flhal_status event_signal(flhal_p_event*, flhal_status);
}  // namespace slots

}  // namespace flhal::opencl
