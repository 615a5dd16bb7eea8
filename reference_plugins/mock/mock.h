// mock.h: the handles of the mock chips, and which file implements which slots.
//
//   plugin.cc   the exported symbol, tables, init, shutdown      device.cc   counting, info, open, close, budget
//   memory.cc   slabs, host views                                copy.cc     copies and fills
//   stream.cc   one worker thread per stream                     event.cc    events, also host-signalled ones
//   module.cc   modules, functions, launches ("flhal-host-1")    ops.cc      add, mul, matmul
//   script.cc   what goes wrong                                  control.cc  hold, release, counts
// Threads: any slot from any thread. A stream's worker is started by stream_create and by nothing earlier.
// Exit: all state is leaked on purpose; a worker may still run when static destructors do.
#pragma once

#include <flhal/plugin.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control.h"
#include "script.h"

namespace mock {

struct Counts {                       // one flhal_mock_counts, atomically; same order
  std::atomic<uint64_t> live_devices, live_slabs, live_slab_bytes, live_streams, live_events, live_modules, live_plans,
      live_host_views, copies, fills, launches, plan_runs, plan_creates, declines, records, waits, bytes_to_device,
      bytes_to_host, bytes_on_device, bytes_filled, queued, misuse;
};
static_assert(sizeof(Counts) == sizeof(flhal_mock_counts));
inline constexpr uint32_t kChips = 2;
Counts& counts(uint32_t chip);        // zero at load, kept over close and open

void misuse(uint32_t chip, const char* what);   // counts and logs

// Leaves the text with core and gives the code back. `host` may be unknown (before init): then the text is lost.
flhal_status fail(flhal_status code, const std::string& text);
// FLHAL_E_UNSUPPORTED when a struct's `next` holds an extension that may not be ignored: the mock knows none.
flhal_status extensions(const void* next, const char* slot);
void set_host(const flhal_host_v1* host);
uint64_t now_ns();

// The gate that hold() closes.
void gate_wait(flhal_p_stream* stream);
void gate_wake();

// Open devices, so that a test can lose one by its number.
void register_device(flhal_p_device* device);
void unregister_device(flhal_p_device* device);

// What a slot begins with: the scripted failure of this call, with its text; FLHAL_OK mostly.
flhal_status slot_begin(Slot slot, uint32_t chip);

struct Outcome {                      // how a piece of work ended
  flhal_status code = FLHAL_OK;
  std::string text;
};
using Work = std::function<Outcome()>;

}  // namespace mock

struct flhal_p_plugin {
  uint32_t n_devices = 0;
  uint32_t chip_of[mock::kChips] = {};       // the plugin's index -> chip
  std::vector<flhal_dtype> storage_dtypes;
  std::atomic<uint32_t> open_devices{0};
};

struct flhal_p_device {
  flhal_p_plugin* plugin;
  uint32_t chip;                             // 0 chip_a, 1 chip_b
  uint64_t memory_bytes;
  std::atomic<uint64_t> used_bytes{0};
  std::atomic<bool> lost{false};
  mock::Counts& counts() const { return mock::counts(chip); }
};

struct flhal_p_memory {
  flhal_p_device* device;
  char* inside;                              // readable and writable; known to the mock alone
  char* outside;                             // what users see: inaccessible. nullptr for pinned memory
  uint64_t address;                          // as told to core
  uint64_t bytes, reserved_bytes;
  uint32_t kind;
  std::atomic<uint32_t> in_use{0};           // pieces of queued work that name it
};

// The state outlives the handle: queued work may still look at it.
struct flhal_p_event {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t armed = 0, done = 0;            // records so far; the highest one that has completed
    uint64_t time_ns = 0;                    // of that
    mock::Outcome outcome;
    bool any_recorded = false;
  };
  flhal_p_device* device;
  uint32_t flags;
  std::shared_ptr<State> state = std::make_shared<State>();
};

struct flhal_p_stream {
  flhal_p_device* device;
  int32_t priority;
  uint64_t number;                           // for the reorder generator
  std::atomic<bool> draining{false};         // stream_destroy: hold() no longer counts
  std::atomic<bool> submitting{false};       // finds two submissions at once

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<mock::Work> queue;
  uint64_t submitted = 0, completed = 0;
  bool stop = false;
  mock::Outcome first_failure;               // until a stream_synchronize has told it
  std::thread worker;
};

struct flhal_p_function {
  const flhal_host_function* code;
  flhal_p_module* module;
};

struct flhal_p_module {
  flhal_p_device* device;
  const flhal_host_module* code;
  std::deque<flhal_p_function> functions;    // stable addresses
  std::mutex mutex;
  std::atomic<uint32_t> in_use{0};
};

namespace mock {

// Runs `work` now (stream == nullptr) or on the stream's worker. `uses`: slabs it touches, kept counted until it ended.
// Scripted delays, losses and failures of `slot` happen in here.
flhal_status submit(flhal_p_device* device, flhal_p_stream* stream, Slot slot, std::vector<flhal_p_memory*> uses, Work work);

// Queues `work` on the stream behind everything else, without delay; for records and waits.
void enqueue(flhal_p_stream* stream, Work work);

inline char* inside_of(const flhal_p_place& place) {
  return place.memory != nullptr ? place.memory->inside + place.offset : static_cast<char*>(place.host);
}
flhal_p_memory* memory_at(uint64_t address);   // nullptr when no live slab holds it

extern const flhal_ops_v1 kOps;
extern const flhal_mock_control_v1 kControl;

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

}  // namespace mock
