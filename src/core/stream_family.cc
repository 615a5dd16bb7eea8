// src/core/stream_family.cc: making, releasing and closing the streams of one device.
//
// Idea: a released stream is not destroyed, it is handed out again under a new id; so nothing has to wait for its work,
// and points that name it stay true. What is kept is bounded by the most streams that were ever alive at once.
#include <memory>
#include <unordered_map>

#include "core/event.h"
#include "core/exit.h"
#include "core/fork_guard.h"
#include "core/worker.h"

namespace flhal {

static std::mutex g_families_mutex;
static std::mutex g_workers_turn_mutex;     // workers are turned on and off one after the other
static std::atomic<uint64_t> g_next_stream_id{1};

static std::unordered_map<Device*, StreamFamily*>& families() {   // under g_families_mutex
  // Leaked on purpose: streams may be used until the process is gone, after static destructors ran.
  static auto* all = new std::unordered_map<Device*, StreamFamily*>();
  return *all;
}

StreamFamily* family_of(Device* device) {
  std::lock_guard lock(g_families_mutex);
  StreamFamily*& family = families()[device];
  if (family == nullptr) {
    family = new StreamFamily();
    family->device = device;
  }
  return family;
}

// A released stream whose work has ended. One that is still busy is left alone: its late failure is nobody's any more.
static Stream* take_idle(StreamFamily* family, int32_t priority) {
  Stream* found = nullptr;
  {
    std::lock_guard lock(family->mutex);
    for (size_t i = 0; i < family->idle.size() && !found; ++i) {
      if (family->idle[i]->priority != priority) continue;
      found = family->idle[i];
      family->idle.erase(family->idle.begin() + ptrdiff_t(i));
    }
  }
  if (found == nullptr) return nullptr;
  Status status = found->query();           // without the lock: it asks the plugin
  if (status.code() == FLHAL_NOT_READY) {
    std::lock_guard lock(family->mutex);
    family->idle.push_back(found);          // to the end: the others get their turn
    return nullptr;
  }
  found->clear_error();                     // also what it waited for in its former life
  return found;
}

Result<Stream*> make_stream(Device* device, int32_t priority) {
  StreamFamily* family = family_of(device);
  uint64_t id = g_next_stream_id.fetch_add(1, std::memory_order_relaxed);
  if (Stream* stream = take_idle(family, priority)) {
    stream->id = id;
    stream->references.store(1, std::memory_order_relaxed);
    stream->arena.store(stream->parked_arena, std::memory_order_release);
    stream->tag = kStreamTag;
    return stream;
  }
  Plugin& plugin = *device->plugin;
  flhal_p_stream* handle = nullptr;
  if (plugin.has_streams) {
    auto serial = plugin.lock();
    FLHAL_TRY(plugin_answer(plugin, "stream_create", plugin_call(plugin.table.stream_create, device->handle, priority, 0, &handle)));
    if (handle == nullptr) {
      return fail(FLHAL_E_INTERNAL, "stream_create of {} answered FLHAL_OK but gave no stream; report it to its maker",
                  plugin.id);
    }
    family->n_plugin_streams.fetch_add(1, std::memory_order_relaxed);
  }
  auto* stream = new Stream(device, id, handle);
  if (stream->asynchronous) rest_before_exit();
  stream->priority = priority;
  stream->cache_slot.store(uint32_t(id % kCacheSlots), std::memory_order_relaxed);
  {
    std::lock_guard lock(family->mutex);
    family->streams.push_back(stream);
  }
  config_on_async_level(follow_async_level);
  // Listed first: a change of the level from now on finds the stream, an earlier one is seen here.
  std::lock_guard turn(g_workers_turn_mutex);
  stream->follow_level();
  return stream;
}

Stream* first_busy_stream(uint64_t* out_submitted) {
  Stream* busy = nullptr;
  *out_submitted = 0;
  std::lock_guard lock(g_families_mutex);
  for (auto& [device, family] : families()) {
    std::lock_guard of_device(family->mutex);
    for (Stream* stream : family->streams) {
      if (!stream->asynchronous) continue;
      *out_submitted += stream->here().sequence;
      if (busy == nullptr && !stream->rests()) busy = stream;
    }
  }
  return busy;
}

void follow_async_level() {
  std::lock_guard turn(g_workers_turn_mutex);
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(g_families_mutex);
    for (auto& [device, family] : families()) {
      std::lock_guard of_device(family->mutex);
      streams.insert(streams.end(), family->streams.begin(), family->streams.end());
    }
  }
  for (Stream* stream : streams) stream->follow_level();
}

void end_workers(Device* device) {
  StreamFamily* family = family_of(device);
  std::lock_guard turn(g_workers_turn_mutex);
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(family->mutex);
    streams = family->streams;
  }
  for (Stream* stream : streams) stream->end_worker();
}

Status release_stream(Stream* stream) {
  if (stream->is_default) return FLHAL_OK;
  if (stream->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return FLHAL_OK;
  stream->tag = 0;                          // a stale handle is told apart from a live one
  stream->parked_arena = stream->arena.exchange(nullptr, std::memory_order_acq_rel);   // also by the allocator's fast path
  if (stream->device->lost()) return FLHAL_OK;
  StreamFamily* family = family_of(stream->device);
  std::lock_guard lock(family->mutex);
  family->idle.push_back(stream);
  return FLHAL_OK;
}

Status synchronize_device(Device* device) {
  StreamFamily* family = family_of(device);
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(family->mutex);
    streams = family->streams;
  }
  flhal_status first = FLHAL_OK;
  std::string text;
  for (Stream* stream : streams) {
    Status status = stream->synchronize();
    if (!status.ok() && first == FLHAL_OK) {
      first = status.code();
      text = last_error_text();
    }
  }
  return first == FLHAL_OK ? Status() : fail_text(first, std::move(text));
}

void close_streams(Device* device) {
  StreamFamily* family = family_of(device);
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(family->mutex);
    streams.swap(family->streams);
    family->closed.insert(family->closed.end(), streams.begin(), streams.end());
    family->idle.clear();
  }
  Plugin& plugin = *device->plugin;
  for (Stream* stream : streams) {
    if (!device->lost()) (void)stream->synchronize();
    stream->end_worker();
    stream->tag = 0;
    stream->arena.store(nullptr, std::memory_order_release);
    if (stream->worker_) stream->worker_->inner()->arena.store(nullptr, std::memory_order_release);
    stream->completed_up_to(UINT64_MAX);    // nothing will ever be behind a point of it again
    stream->hear();
    std::deque<Stream::Mark> marks;
    {
      std::lock_guard lock(stream->marks_mutex_);
      marks.swap(stream->marks_);
    }
    for (auto& mark : marks) drop(mark.event);
  }
  retire_poll();
  std::vector<PluginEvent*> events;
  {
    std::lock_guard lock(family->mutex);
    events.swap(family->all_events);
    std::vector<flhal_p_event*> handles;
    for (PluginEvent* event : events) handles.push_back(event->handle);
    auto serial = plugin.lock();
    for (flhal_p_event* handle : handles) plugin_call(plugin.table.event_destroy, handle);
    for (PluginEvent* event : events) event->handle = nullptr;   // boxes that still hold one see "already done"
    for (auto& free : family->free_events) {
      for (PluginEvent* event : free) delete event;
      free.clear();
    }
    family->n_plugin_events.store(0, std::memory_order_relaxed);
  }
  for (Stream* stream : streams) {
    if (stream->handle == nullptr) continue;
    auto serial = plugin.lock();
    if (device->lost()) (void)plugin_call(plugin.table.stream_synchronize, stream->handle);   // a lost device ends its work with a failure
    plugin_call(plugin.table.stream_destroy, stream->handle);
    stream->handle = nullptr;
    family->n_plugin_streams.fetch_sub(1, std::memory_order_relaxed);
  }
}

Status check_stream(const flhal_stream* handle, const char* function) {
  if (forked()) return forked_failure(function);
  auto* stream = reinterpret_cast<const Stream*>(handle);
  if (stream == nullptr || stream->tag != kStreamTag) {
    return fail(FLHAL_E_INVALID,
                "{}: {} is not a stream; give one of flhal_stream_default or flhal_stream_create that was not released "
                "and whose device was not shut down or reset",
                function, static_cast<const void*>(handle));
  }
  return FLHAL_OK;
}

}  // namespace flhal
