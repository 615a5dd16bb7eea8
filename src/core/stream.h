// src/core/stream.h: a queue of one device, and points in it.
//
// Idea: a Point is (stream id, sequence number). Every submission takes the next number. On a plugin without stream slots
// each submission is finished when its slot returns, so every point taken is already reached. On an asynchronous plugin a
// point is reached when a plugin event recorded at or after it has completed.
// Threads: submit() serialises callers of the same stream ("core never calls two slots with the same stream at once").
#pragma once

#include <flhal/plugin.h>
#include <flhal/stream.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/device.h"
#include "core/status.h"

namespace flhal {

inline constexpr uint32_t kStreamTag = 0x53564c46;  // "FLVS"

class Stream;
struct Point {                 // "everything submitted to the stream up to sequence"
  Stream* stream = nullptr;    // kept alive by its device for as long as points may name it
  uint64_t sequence = 0;
};

class Stream {
 public:
  uint32_t tag = kStreamTag;
  Device* const device;
  const uint64_t id;
  flhal_p_stream* const handle;             // nullptr on plugins without streams

  Stream(Device* device, uint64_t id, flhal_p_stream* handle);

  // Runs `slot_call(flhal_p_stream*) -> flhal_status` as the next submission: checks poison and lost, takes the stream's
  // lock and the plugin's when it serialises, counts, and turns failures into texts. OP_FAILED poisons the stream,
  // DEVICE_LOST marks the device. `what` names the work in error texts.
  template <typename Call>
  Status submit(const char* what, Call&& slot_call) {
    std::lock_guard lock(mutex_);
    if (__builtin_expect(!usable(), 0)) return unusable_failure(what);
    auto serial = device->plugin->lock();
    flhal_status answer = slot_call(handle);
    sequence_.fetch_add(1, std::memory_order_release);
    if (__builtin_expect(answer != FLHAL_OK, 0)) return submission_failed(what, answer);
    return FLHAL_OK;
  }

  Point here() { return {this, sequence_.load(std::memory_order_acquire)}; }
  bool reached(uint64_t sequence);          // never blocks
  Status wait_for(uint64_t sequence);       // host waits
  Status query();
  Status synchronize();
  void poison(flhal_status code, std::string text);
  void clear_error();
  bool usable() const { return !poisoned_.load(std::memory_order_relaxed) && !device->lost(); }
  Status unusable_failure(const char* what);

  std::mutex& mutex() { return mutex_; }

 private:
  Status submission_failed(const char* what, flhal_status answer);

  std::mutex mutex_;
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<bool> poisoned_{false};
  flhal_status poison_code_ = FLHAL_OK;
  std::string poison_text_;
  friend class EventPool;
};

Status check_stream(const flhal_stream* handle, const char* function);  // tag, fork guard, shut down
inline Stream* stream_from(flhal_stream* h) { return reinterpret_cast<Stream*>(h); }
inline flhal_stream* handle_of(Stream* s) { return reinterpret_cast<flhal_stream*>(s); }

// Deferred release: runs `release(ctx)` once when every point is reached; at once when they are. Never blocks, never
// throws; never called in a forked child. Used for blocks, modules, plans, events.
void retire(const Point* points, uint32_t n_points, void (*release)(void*), void* ctx);
// Looks at the list and releases what is due. Called by allocation, synchronize and the service thread.
void retire_poll();

}  // namespace flhal
