// src/layers/objects.h: what the layer validate knows of a plugin's objects: which are alive, whose they are, what they hold.
//
// Threads: everything here is guarded by the layer's one lock (validate.cc).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "layers/clocks.h"
#include "layers/slot_call.h"

namespace flhal::layers {

struct View {                    // between host_begin and host_end
  const void* host;
  uint64_t offset, bytes;
};

struct Object {
  Kind kind = Kind::kPlugin;
  bool alive = true;
  bool adopted = false;          // first seen in use: validate was turned on later than it was made
  uint32_t number = 0;           // for texts: "stream 3", per kind and plugin
  uint32_t times_given = 1;      // above 1: the plugin gave the same handle again, and its releases are not core's fault
  Object* owner = nullptr;       // the device; of a function: the module; nullptr when not known
  uint64_t ended = 0;            // the call that gave it back
  Uses uses;                     // queued work that needs it

  // device
  uint32_t index = ~0u;
  // slab
  uint64_t bytes = 0, address = 0;
  const char* host = nullptr;
  const char* first_view = nullptr;   // where offset 0 would be, by the first view
  uint32_t memory_kind = 0;
  std::vector<View> views;
  Accesses accesses;
  // stream
  int clock = -1;                // its place in the clocks; -1: not followed
  const char* inside = nullptr;  // the slot that is using it
  uint64_t idle_at = 0;          // everything up to this was said to have ended ...
  SlotId idle_by = SlotId::kCount;    // ... by this slot
  uint64_t events_done_at = 0;   // an event of this point was said to be done
  // event
  uint32_t flags = 0;
  bool recorded = false, signalled = false, said_done = false;   // said_done: event_synchronize returned for this record
  Object* stream = nullptr;
  uint64_t at = 0;               // the point of its last record
  Clock clock_then;
  uint64_t recorded_ns = 0, done_ns = 0, signalled_ns = 0;
  // module
  const flhal_host_module* functions = nullptr;
  // plan
  uint64_t workspace_bytes = 0, workspace_align = 0;
};

class Objects {
 public:
  Object* find(Kind kind, const void* handle);
  Object& make(Kind kind, const void* handle);   // replaces a dead one of the same value
  Object& adopt(Kind kind, const void* handle);
  void end(Object& object, uint64_t call);
  // Which other kind has this value and is alive; kPlugin with false when none.
  std::pair<bool, Kind> other_kind(Kind kind, const void* handle);
  template <typename F>
  void each(Kind kind, F&& f) {
    for (auto& [handle, object] : of_[static_cast<size_t>(kind)]) f(object);
  }
  void clear();

 private:
  std::unordered_map<const void*, Object> of_[static_cast<size_t>(Kind::kPlan) + 1];
  uint32_t made_[static_cast<size_t>(Kind::kPlan) + 1] = {};
};

std::string name_of(const Object& object);       // "stream 3"

}  // namespace flhal::layers
