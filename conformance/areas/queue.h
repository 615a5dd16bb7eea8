// conformance/areas/queue.h: streams, events and gates for the cases of the async profile.
//
// A Gate is an event that the host signals: a stream that waits for it stands still until the case says so, which makes "not
// finished yet" certain instead of likely. Chips without host-signalled events get a queue full of large fills instead
// (Backlog), and what a case sees there is a hint, not a proof.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "runner/context.h"

namespace flhal::conformance {

struct Queue {                              // one stream
  Device& device;
  flhal_p_stream* stream = nullptr;
  explicit Queue(Device& d, int32_t priority = 0) : device(d) {
    auto serial = d.plugin.lock();
    expect_ok(d.table.stream_create(d.handle, priority, 0, &stream), "stream_create");
    FLHAL_EXPECT(stream != nullptr, "stream_create answered FLHAL_OK and left the handle NULL");
  }
  ~Queue() {                                // core never destroys a stream with unfinished work
    auto serial = device.plugin.lock();
    device.table.stream_synchronize(stream);
    device.table.stream_destroy(stream);
    take_error();
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  flhal_status query() const {
    auto serial = device.plugin.lock();
    return device.table.stream_query(stream);
  }
  void finish() const {
    auto serial = device.plugin.lock();
    expect_ok(device.table.stream_synchronize(stream), "stream_synchronize");
  }
};

struct Event {
  Device& device;
  flhal_p_event* event = nullptr;
  explicit Event(Device& d, uint32_t flags = 0) : device(d) {
    auto serial = d.plugin.lock();
    expect_ok(d.table.event_create(d.handle, flags, &event), "event_create");
    FLHAL_EXPECT(event != nullptr, "event_create answered FLHAL_OK and left the handle NULL");
  }
  ~Event() {
    auto serial = device.plugin.lock();
    device.table.event_destroy(event);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Queue& q) const {
    auto serial = device.plugin.lock();
    expect_ok(device.table.event_record(event, q.stream), "event_record");
  }
  void wait_in(const Queue& q) const {
    auto serial = device.plugin.lock();
    expect_ok(device.table.event_wait(event, q.stream), "event_wait");
  }
  flhal_status query() const {
    auto serial = device.plugin.lock();
    return device.table.event_query(event);
  }
  void synchronize() const {
    auto serial = device.plugin.lock();
    expect_ok(device.table.event_synchronize(event), "event_synchronize");
  }
  void signal(flhal_status status) const {
    auto serial = device.plugin.lock();
    expect_ok(device.table.event_signal(event, status), "event_signal");
  }
};

inline bool has_gates(const Device& device) { return device.has(FLHAL_CAP_EVENT_HOST_SIGNAL) && device.table.event_signal != nullptr; }

// Holds a stream. Opens by itself after `limit_ms`, so that a plugin that blocks where it may not is told by the case and not
// by a time limit: opened_by_itself().
class Gate {
 public:
  Gate(Device& device, const Queue& queue, int limit_ms = 3000) : queue_(queue), event_(device, FLHAL_EVENT_HOST_SIGNALED) {
    watchdog_ = std::thread([this, limit_ms] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] { return open_; })) return;
      open_ = by_itself_ = true;
      lock.unlock();
      device_table().event_signal(event_.event, FLHAL_OK);
    });
    event_.wait_in(queue);
  }
  ~Gate() {                                 // the event may go once the stream is past it
    open();
    watchdog_.join();
    auto serial = queue_.device.plugin.lock();
    queue_.device.table.stream_synchronize(queue_.stream);
  }
  void open() {
    {
      std::lock_guard lock(mutex_);
      if (open_) return;
      open_ = true;
    }
    changed_.notify_all();
    event_.signal(FLHAL_OK);
  }
  bool opened_by_itself() {
    std::lock_guard lock(mutex_);
    return by_itself_;
  }
  const Event& event() const { return event_; }

 private:
  const flhal_plugin_table_v1& device_table() const { return event_.device.table; }
  const Queue& queue_;
  Event event_;
  std::thread watchdog_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, by_itself_ = false;
};

// The first device, with streams; and with gates where a case cannot do without.
inline Device& queued_device(Context& ctx) {
  ctx.need_streams();
  return ctx.device();
}
inline Device& gated_device(Context& ctx) {
  Device& device = queued_device(ctx);
  if (!has_gates(device)) not_supported("the chip has no host-signalled events, with which this suite holds a stream still");
  return device;
}

// Still not done after a moment in which it could have been: 30 ms, and only used where "done" is a fault.
template <typename Done>
bool stays_undone(Done done) {
  for (int i = 0; i < 6; ++i) {
    if (done()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return !done();
}
template <typename Done>
bool becomes_done(Done done, int limit_ms = 5000) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (std::chrono::steady_clock::now() < limit) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

}  // namespace flhal::conformance
