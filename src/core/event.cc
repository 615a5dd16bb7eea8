// src/core/event.cc: event boxes, and the pool of plugin events behind them.
//
// Invariant: a plugin event in the pool is referred to by nobody and nothing on any chip waits for it.
#include "core/event.h"

#include <time.h>

#include "core/bridge.h"
#include "core/fork_guard.h"
#include "core/worker.h"

namespace flhal {

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// ---- plugin events ------------------------------------------------------------------------------------------------

Result<PluginEvent*> take_plugin_event(StreamFamily* family, uint32_t flags) {
  if (!(flags & FLHAL_EVENT_HOST_SIGNALED)) {
    std::lock_guard lock(family->mutex);
    auto& free = family->free_events[flags & FLHAL_EVENT_TIMING];
    if (!free.empty()) {
      PluginEvent* event = free.back();
      free.pop_back();
      event->references.store(1, std::memory_order_relaxed);
      return event;
    }
  }
  Plugin& plugin = *family->device->plugin;
  auto event = std::make_unique<PluginEvent>();
  event->family = family;
  event->flags = flags;
  {
    auto serial = plugin.lock();
    FLHAL_TRY(plugin_answer(plugin, "event_create",
                            plugin_call(plugin.table.event_create, family->device->handle, event->flags, &event->handle)));
  }
  std::lock_guard lock(family->mutex);
  family->all_events.push_back(event.get());
  family->n_plugin_events.fetch_add(1, std::memory_order_relaxed);
  return event.release();
}

static void back_to_pool(void* context) {
  auto* event = static_cast<PluginEvent*>(context);
  StreamFamily* family = event->family;
  std::lock_guard lock(family->mutex);
  event->points.clear();
  if (event->flags & FLHAL_EVENT_HOST_SIGNALED) {   // a signal cannot be taken back
    if (event->handle) {
      std::erase(family->all_events, event);
      family->n_plugin_events.fetch_sub(1, std::memory_order_relaxed);
      auto serial = family->device->plugin->lock();
      plugin_call(family->device->plugin->table.event_destroy, event->handle);
    }
    delete event;
    return;
  }
  if (event->handle == nullptr) {           // its device was closed meanwhile
    delete event;
    return;
  }
  family->free_events[event->flags].push_back(event);
}

void drop(PluginEvent* event) {
  if (event == nullptr || event->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  retire(event->points.data(), uint32_t(event->points.size()), back_to_pool, event);
}

// ---- boxes --------------------------------------------------------------------------------------------------------

Event::~Event() {
  tag = 0;
  drop(content_.event);
}

Event::Content Event::take() {
  std::lock_guard lock(mutex_);
  if (content_.event) hold(content_.event);
  return content_;
}

Status Event::record(Stream* stream) {
  Content fresh;
  fresh.point.stream = stream;
  if (stream->asynchronous && !stream->device->lost()) {
    FLHAL_TRY(stream->mark(flags & FLHAL_EVENT_TIMING, &fresh.event, &fresh.point.sequence));
  } else if (!(flags & FLHAL_EVENT_WITH_TIMING)) {
    fresh.point = stream->here();
  } else {
    fresh.time_ns = std::make_shared<std::atomic<uint64_t>>(0);
    if (stream->queues_calls() && !stream->worker_idle() && stream->usable()) {
      FLHAL_TRY(stream->queue(work_of("event record", [time = fresh.time_ns](Stream*) -> Status {
        time->store(now_ns(), std::memory_order_relaxed);
        return FLHAL_OK;
      })));
    } else {
      fresh.time_ns->store(now_ns(), std::memory_order_relaxed);
    }
    fresh.point = stream->here();
  }
  PluginEvent* old;
  {
    std::lock_guard lock(mutex_);
    old = content_.event;
    content_ = std::move(fresh);
  }
  drop(old);
  return FLHAL_OK;
}

Status Event::wait(Stream* stream) {
  Content content = take();
  struct Drop {
    PluginEvent* event;
    ~Drop() { drop(event); }
  } at_end{content.event};
  Stream* source = content.point.stream;
  if (source == nullptr || source == stream) return FLHAL_OK;
  if (!stream->usable()) return stream->unusable_failure("event wait");
  bool same_plugin = source->device->plugin == stream->device->plugin;
  if (!source->reached(content.point.sequence) && same_plugin && content.event && content.event->handle &&
      stream->asynchronous) {
    return stream->wait_on_chip(content.event, content.point);
  }
  return bridge_wait(stream, content.point);
}

Status Event::query() {
  Content content = take();
  drop(content.event);
  if (content.point.stream == nullptr) return FLHAL_OK;
  if (!content.point.stream->reached(content.point.sequence)) return FLHAL_NOT_READY;
  return content.point.stream->wait_for(content.point.sequence);  // reached: only looks for its failure
}

Status Event::synchronize() {
  Content content = take();
  drop(content.event);
  if (content.point.stream == nullptr) return FLHAL_OK;
  return content.point.stream->wait_for(content.point.sequence);
}

Status Event::elapsed_ns(Event* from, Event* to, uint64_t* out_ns) {
  Content a = from->take(), b = to->take();
  struct Drop {
    PluginEvent *a, *b;
    ~Drop() { drop(a), drop(b); }
  } at_end{a.event, b.event};
  const char* missing = !(from->flags & to->flags & FLHAL_EVENT_WITH_TIMING) ? "was made without FLHAL_EVENT_WITH_TIMING"
                        : !a.point.stream || !b.point.stream                  ? "was never recorded"
                                                                              : nullptr;
  if (missing) {
    bool first = !(from->flags & FLHAL_EVENT_WITH_TIMING) ||
                 ((to->flags & FLHAL_EVENT_WITH_TIMING) && a.point.stream == nullptr);
    return fail(FLHAL_E_INVALID, "flhal_event_elapsed_ns: the {} event {}; time needs two recorded events made with it",
                first ? "first" : "second", missing);
  }
  if (a.point.stream->device != b.point.stream->device) {
    return fail(FLHAL_E_INVALID, "flhal_event_elapsed_ns: the events lie on {} and {}; time is only known within one device",
                a.point.stream->device->name, b.point.stream->device->name);
  }
  if (!a.point.stream->reached(a.point.sequence) || !b.point.stream->reached(b.point.sequence)) return FLHAL_NOT_READY;
  if (a.event && b.event && a.event->handle && b.event->handle) {
    Plugin& plugin = *a.point.stream->device->plugin;
    auto serial = plugin.lock();
    return plugin_answer(plugin, "event_elapsed_ns",
                         plugin_call(plugin.table.event_elapsed_ns, a.event->handle, b.event->handle, out_ns));
  }
  auto time = [](const Content& c) { return c.time_ns ? c.time_ns->load(std::memory_order_relaxed) : 0; };
  *out_ns = time(b) > time(a) ? time(b) - time(a) : 0;
  return FLHAL_OK;
}

Status check_event(const flhal_event* handle, const char* function) {
  if (forked()) return forked_failure(function);
  auto* event = reinterpret_cast<const Event*>(handle);
  if (event == nullptr || event->tag != kEventTag) {
    return fail(FLHAL_E_INVALID, "{}: {} is not an event; give one that flhal_event_create made and that was not released",
                function, static_cast<const void*>(handle));
  }
  return FLHAL_OK;
}

}  // namespace flhal
