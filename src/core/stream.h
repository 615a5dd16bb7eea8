// src/core/stream.h: a queue of one device, and points in it.
//
// Idea: a Point is (stream, sequence number). Every submission takes the next number. On a plugin without stream slots
// each submission is finished when its slot returns, so every point taken is already reached. On an asynchronous plugin a
// point is reached when a plugin event recorded at or after it has completed; such events ("marks") are recorded only
// when somebody asks for a point, never per submission. At async level 2 a stream of a plugin without stream slots hands
// whole calls to a worker thread (worker.h); a point is reached when the worker has finished the calls up to it.
// Threads: on an asynchronous plugin submit() serialises the callers of one stream ("core never calls two slots with the
// same stream at once"). Without stream slots there is nothing to protect: callers run side by side.
// Locks: mutex_ (slots that take the stream), then marks_mutex_, then poison_mutex_. The last two are leaves, except that
// marks_mutex_ is held during event_query, which never blocks.
// Life: a Stream is never deleted. A released one waits in its device's list and is handed out again under a new id, so a
// Point may be kept for as long as one likes and still tells the truth.
#pragma once

#include <flhal/plugin.h>
#include <flhal/stream.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/device.h"
#include "core/status.h"

namespace flhal {

inline constexpr uint32_t kStreamTag = 0x53564c46;  // "FLVS"
inline constexpr uint32_t kCacheSlots = 8;          // memory/thread_cache.h

// What submit() answers instead of making the slot call on a stream whose calls a worker runs: the caller queues a copy of
// its call with Stream::queue. Never leaves the library.
inline constexpr flhal_status kQueueInstead = 0x40000000;

class Stream;
class Work;                    // core/worker.h
class Worker;                  // core/worker.h
class KeptRanges;              // memory/kept_ranges.h
struct PluginEvent;            // core/event.h
struct StreamFamily;           // core/event.h: all streams and plugin events of one device
struct Arena;                  // memory/arena.h: what the pool keeps for one stream

struct Point {                 // "everything submitted to the stream up to sequence"
  Stream* stream = nullptr;
  uint64_t sequence = 0;
};

class Stream {
 public:
  uint32_t tag = kStreamTag;
  std::atomic<uint32_t> cache_slot{0};      // where threads look for their cache of this stream's blocks; below kCacheSlots
  Device* const device;
  std::atomic<Arena*> arena{nullptr};       // set by the pool at the first allocation; nullptr while released
  Arena* parked_arena = nullptr;            // what a released stream gets back
  uint64_t id;                              // never used again; a recycled stream gets a new one
  const bool asynchronous;                  // the plugin has streams
  bool is_default = false;
  int32_t priority = 0;
  std::atomic<uint32_t> references{1};
  flhal_p_stream* handle;                   // nullptr on plugins without streams; read under mutex_
  const KeptRanges* kept = nullptr;         // of the queued call that runs here; a worker's inner stream only

  Stream(Device* device, uint64_t id, flhal_p_stream* handle);

  // Runs `slot_call(flhal_p_stream*) -> flhal_status` as the next submission: checks poison and lost, takes the stream's
  // lock and the plugin's when it serialises, counts, and turns failures into texts. OP_FAILED poisons the stream,
  // DEVICE_LOST marks the device. Positive answers (DECLINED, EXHAUSTED) are passed on without a text.
  // `what` names the work in error texts; static text (it is kept for failures that come later).
  template <typename Call>
  Status submit(const char* what, Call&& slot_call) {
    if (__builtin_expect(attention_.load(std::memory_order_relaxed) != 0 || device->lost(), 0)) return not_now(what);
    if (!asynchronous) {                    // finished when the slot returns: no order to keep, no lock
      auto serial = device->plugin->lock();
      flhal_status answer = slot_call(static_cast<flhal_p_stream*>(nullptr));
      uint64_t number = sequence_.fetch_add(1, std::memory_order_release) + 1;
      if (__builtin_expect(answer != FLHAL_OK, 0)) return submission_failed(what, answer, number);
      return FLHAL_OK;
    }
    std::lock_guard lock(mutex_);
    auto serial = device->plugin->lock();
    flhal_status answer = slot_call(handle);
    uint64_t number = sequence_.fetch_add(1, std::memory_order_release) + 1;
    names_[number % kNames] = what;
    if (__builtin_expect(answer != FLHAL_OK, 0)) return submission_failed(what, answer, number);
    if (__builtin_expect(config().async_level.load(std::memory_order_relaxed) == 0, 0)) return finish_locked();
    return FLHAL_OK;
  }

  // Level 2. Queues the work, or, when the level was lowered meanwhile, waits for the worker and runs it here.
  Status queue(std::unique_ptr<Work> work);
  bool queue_always(std::unique_ptr<Work>& work);   // also on a failed stream; false, `work` kept: there is no worker
  // Makes the slot call in this thread although a worker runs the stream's calls. For work that the host waits for anyway:
  // the caller has seen the worker idle.
  template <typename Call>
  Status submit_here(const char* what, Call&& slot_call) {
    if (!usable()) return unusable_failure(what);
    auto serial = device->plugin->lock();
    flhal_status answer = slot_call(static_cast<flhal_p_stream*>(nullptr));
    return answer == FLHAL_OK ? Status() : submission_failed(what, answer, here().sequence + 1);
  }
  bool queues_calls() const { return (attention_.load(std::memory_order_relaxed) & kQueuesCalls) != 0; }
  // Work that was submitted may still run when the call that submitted it has returned.
  bool deferred() const { return asynchronous || queues_calls() || outstanding_.load(std::memory_order_acquire) != 0; }
  // Nothing is queued or running on a stream without queues of its own.
  bool worker_idle() const { return !asynchronous && outstanding_.load(std::memory_order_acquire) == 0; }
  // It has a worker that runs calls of others than this thread, and does not wait for another stream itself.
  bool worker_moves() const;
  void follow_level();                      // turns the worker on or off as async_level says; waits for it when off
  void end_worker();                        // finishes what is queued and ends the thread

  Point here() { return {this, sequence_.load(std::memory_order_acquire)}; }
  bool reached(uint64_t sequence) {         // never blocks
    return known_reached(sequence) || (asynchronous && reached_slowly(sequence));
  }
  // Like reached() without asking the plugin: what the last progress() or wait found. Safe under any lock.
  bool known_reached(uint64_t sequence) const {
    return worker_idle() || completed_.load(std::memory_order_acquire) >= sequence;
  }
  void progress();                          // asks the plugin about the marks; never blocks
  Status wait_for(uint64_t sequence);       // host waits
  Status query();
  bool rests();                             // nothing is queued or running, or the device is lost; never blocks, touches no state
  Status synchronize();
  void poison(flhal_status code, std::string text, uint64_t sequence);
  void poison(flhal_status code, std::string text) { poison(code, std::move(text), here().sequence); }
  void clear_error();
  bool usable() const { return !poisoned() && !device->lost(); }
  Status unusable_failure(const char* what);
  // FLHAL_OK, or the failure that hit a submission up to `sequence`; gives its text in *text.
  flhal_status failure_before(uint64_t sequence, std::string* text);

  // `look(ctx)` runs once, when the work up to `sequence` has ended and before anybody who waits for it goes on; it may poison
  // the stream. At level 0 that is here, and its failure is the answer. Asynchronous plugins only.
  Status look_after(uint64_t sequence, void (*look)(void*), void* ctx);

  // Records a plugin event that completes at the end of everything submitted so far and gives a reference to it (the
  // caller drops it), with the point it marks. `flags`: FLHAL_EVENT_TIMING. Asynchronous plugins only.
  Status mark(uint32_t flags, PluginEvent** out_event, uint64_t* out_sequence);
  // Makes later work of this stream wait for `event` on the chip. Same plugin only.
  Status wait_on_chip(PluginEvent* event, Point source);
  // Remembers that this stream's work relies on `source`: its failure becomes this stream's at the next wait.
  void depend_on(Point source);

  std::mutex& mutex() { return mutex_; }

 private:
  friend class Worker;
  static constexpr uint64_t kNames = 16;
  // Bits of attention_: what keeps submit() from the plain way.
  static constexpr uint32_t kPoisoned = 1, kQueuesCalls = 2;
  struct Mark {
    PluginEvent* event;
    uint64_t sequence;
  };

  struct Source {
    Point point;
    uint64_t since;                         // the first submission of this stream that relies on it
  };
  struct Look {
    uint64_t sequence;
    void (*look)(void*);
    void* ctx;
  };

  void hear();                              // runs the looks whose work has ended
  bool poisoned() const { return (attention_.load(std::memory_order_acquire) & kPoisoned) != 0; }
  [[gnu::cold]] Status not_now(const char* what);   // the failure that keeps the stream from working, or kQueueInstead
  bool reached_slowly(uint64_t sequence);
  bool ended_well_already();                // everything, by the plugin's answer at this moment; never blocks
  Status submission_failed(const char* what, flhal_status answer, uint64_t number);
  Status finish_locked();                   // level 0: waits; mutex_ is held
  Status mark_locked(uint32_t flags, PluginEvent** out_event, uint64_t* out_sequence);
  void completed_up_to(uint64_t sequence);
  void asynchronous_failure(flhal_status answer, const char* slot);
  // Makes failures of what this stream relied on, up to `sequence` of its own, its own. False: one of them has not ended, or cannot be
  // asked at this moment; with `wait` they are waited for.
  bool take_failures_of_sources(uint64_t sequence, bool wait);
  Status failure();                         // the poison as a Status with its text; OK when there is none
  Status recreate_handle();
  friend Result<Stream*> make_stream(Device*, int32_t);
  friend Status release_stream(Stream*);
  friend void close_streams(Device*);

  std::atomic<uint32_t> attention_{0};
  std::atomic<uint32_t> outstanding_{0};    // calls the worker has not finished
  Worker* worker_ = nullptr;                // made at the first turn to level 2; never deleted

  std::mutex mutex_;
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> completed_{0};
  const char* names_[kNames] = {};          // of the last submissions, for failures that come later

  std::mutex marks_mutex_;
  std::deque<Mark> marks_;                  // in order; fronts complete first

  std::mutex looks_mutex_;                  // held while looks run: who waits must not pass them; before poison_mutex_
  std::deque<Look> looks_;
  std::atomic<bool> has_looks_{false};

  std::mutex poison_mutex_;
  flhal_status poison_code_ = FLHAL_OK;
  uint64_t poison_sequence_ = 0;            // the first submission that may have failed
  std::string poison_text_;
  std::vector<Source> sources_;             // points of other streams that this one waited for on the chip
  std::atomic<bool> has_sources_{false};
};

Status check_stream(const flhal_stream* handle, const char* function);  // tag, fork guard, shut down
inline Stream* stream_from(flhal_stream* h) { return reinterpret_cast<Stream*>(h); }
inline flhal_stream* handle_of(Stream* s) { return reinterpret_cast<flhal_stream*>(s); }

// Makes a stream of an open device (or takes a released one). Device::open makes the default stream with it and then sets
// is_default.
Result<Stream*> make_stream(Device* device, int32_t priority);
Status release_stream(Stream* stream);      // drops a reference; work in flight ends by itself
Status synchronize_device(Device* device);  // all streams; the first failure
// Of the streams with queues of their own: one that does not rest, or nullptr; and how much was ever submitted to them.
Stream* first_busy_stream(uint64_t* out_submitted);
void follow_async_level();                  // every stream of every device; after a change of the setting
void end_workers(Device* device);           // finishes what they have, also on a lost device, where it is skipped
// Waits for all streams (not on a lost device), destroys the plugin's streams and events. Before device_close.
void close_streams(Device* device);

// Deferred release: runs `release(ctx)` once when every point is reached; at once when they are. Never blocks, never
// throws; never called in a forked child. Used for blocks, modules, plans, events.
void retire(const Point* points, uint32_t n_points, void (*release)(void*), void* ctx);
// Looks at the list and releases what is due. Called by allocation, synchronize and the service thread.
void retire_poll();
// How many releases wait. For tests and reports.
uint64_t retire_pending();

}  // namespace flhal
