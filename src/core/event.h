// src/core/event.h: a re-recordable box around a point, and the plugin events behind it.
//
// Idea: an Event belongs to no device. Recording puts the stream's present point into it; a wait takes the point that is
// in it at that moment. On asynchronous plugins a PluginEvent from the device's pool goes along; without streams the
// point is reached at once, or when the stream's worker gets there, and timing is the host's clock.
// Threads: any. `mutex_` guards the box; it is a leaf but for slots that never block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/stream.h"

namespace flhal {

inline constexpr uint32_t kEventTag = 0x45564c46;  // "FLVE"

// One event of a plugin. Shared by boxes and marks; recorded once per trip out of the pool, so a wait that was queued on
// it can never see a later recording. Goes back when nobody refers to it and everything that waits for it has ended.
struct PluginEvent {
  flhal_p_event* handle = nullptr;
  StreamFamily* family = nullptr;
  uint32_t flags = 0;                       // FLHAL_EVENT_TIMING, or FLHAL_EVENT_HOST_SIGNALED: used once, then destroyed
  std::atomic<uint32_t> references{1};
  std::mutex mutex;                         // guards points
  std::vector<Point> points;                // where it was recorded, and of the streams that wait for it
};

// What core keeps of one device besides the Device itself. Never deleted.
struct StreamFamily {
  Device* device = nullptr;
  std::mutex mutex;                         // guards all; leaf
  std::vector<Stream*> streams;             // every one that was ever made and still has its handle
  std::vector<Stream*> idle;                // released, to be handed out again
  std::vector<Stream*> closed;              // of before a reset or shutdown: points may still name them
  std::vector<PluginEvent*> free_events[2];  // without, with timing
  std::vector<PluginEvent*> all_events;     // every one with a handle, wherever it is
  std::atomic<uint64_t> n_plugin_events{0}, n_plugin_streams{0};
};
StreamFamily* family_of(Device* device);

Result<PluginEvent*> take_plugin_event(StreamFamily* family, uint32_t flags);
inline void hold(PluginEvent* event) { event->references.fetch_add(1, std::memory_order_relaxed); }
void drop(PluginEvent* event);              // nullptr is legal

class Event {
 public:
  uint32_t tag = kEventTag;
  const uint32_t flags;                     // FLHAL_EVENT_WITH_TIMING
  std::atomic<uint32_t> references{1};

  explicit Event(uint32_t flags) : flags(flags) {}
  ~Event();

  Status record(Stream* stream);
  Status wait(Stream* stream);
  Status query();
  Status synchronize();
  static Status elapsed_ns(Event* from, Event* to, uint64_t* out_ns);

 private:
  struct Content {
    Point point;
    PluginEvent* event = nullptr;           // a reference, nullptr on plugins without streams
    std::shared_ptr<std::atomic<uint64_t>> time_ns;   // there, with timing: written when the point is reached
  };
  Content take();                           // a copy with a reference of its own

  std::mutex mutex_;
  Content content_;
};

Status check_event(const flhal_event* handle, const char* function);
inline Event* event_from(flhal_event* h) { return reinterpret_cast<Event*>(h); }
inline flhal_event* handle_of(Event* e) { return reinterpret_cast<flhal_event*>(e); }

uint64_t now_ns();                          // CLOCK_MONOTONIC

}  // namespace flhal
