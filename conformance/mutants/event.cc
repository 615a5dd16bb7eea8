// conformance/mutants/event.cc: wrong in events.
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "mutant.h"

namespace flhal::mutants {
namespace {

struct Known { uint32_t flags; int records; Device device; };
std::map<Event, Known> g_events;
std::mutex g_mutex;

Known known(Event e) {
  std::lock_guard lock(g_mutex);
  return g_events[e];
}
void remember_events() {
  table.event_create = [](Device d, uint32_t flags, Event* out) {
    flhal_status s = base.event_create(d, flags, out);
    std::lock_guard lock(g_mutex);
    if (s == FLHAL_OK) g_events[*out] = {flags, 0, d};
    return s;
  };
  table.event_destroy = [](Event e) {
    {
      std::lock_guard lock(g_mutex);
      g_events.erase(e);
    }
    base.event_destroy(e);
  };
  table.event_record = [](Event e, Stream s) {
    {
      std::lock_guard lock(g_mutex);
      ++g_events[e].records;
    }
    return base.event_record(e, s);
  };
}

}  // namespace

MUTATION(event_create_leaves_memory) {
  table.event_create = [](Device d, uint32_t flags, Event* out) {
    if (host->alloc(32, 16) == nullptr) return FLHAL_E_HOST_MEMORY;
    return base.event_create(d, flags, out);
  };
}
MUTATION(event_destroy_does_nothing) {
  table.event_destroy = [](Event) {};
}
MUTATION(event_is_done_early) {
  table.event_query = [](Event) -> flhal_status { return FLHAL_OK; };
}
MUTATION(event_query_blocks) {
  table.event_query = [](Event e) { return base.event_synchronize(e); };
}
MUTATION(new_event_is_pending) {
  remember_events();
  table.event_query = [](Event e) {
    Known k = known(e);
    return k.records == 0 && !(k.flags & FLHAL_EVENT_HOST_SIGNALED) ? FLHAL_NOT_READY : base.event_query(e);
  };
}
MUTATION(first_record_counts) {
  remember_events();
  table.event_record = [](Event e, Stream s) -> flhal_status {
    std::lock_guard lock(g_mutex);
    return g_events[e].records++ == 0 ? base.event_record(e, s) : FLHAL_OK;
  };
}
MUTATION(wait_is_ignored) {
  remember_events();
  table.event_wait = [](Event e, Stream s) -> flhal_status {
    return known(e).flags & FLHAL_EVENT_HOST_SIGNALED ? base.event_wait(e, s) : FLHAL_OK;
  };
}
MUTATION(wait_follows_later_records) {
  remember_events();
  table.event_wait = [](Event e, Stream s) -> flhal_status {
    Known k = known(e);
    if (k.flags & FLHAL_EVENT_HOST_SIGNALED) return base.event_wait(e, s);
    static const flhal_p_place nowhere{};
    return later(k.device, s, &nowhere, [e](char*) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      while (base.event_query(e) == FLHAL_NOT_READY) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  };
  table.device_close = [](Device d) {
    forget_device(d);
    base.device_close(d);
  };
}
MUTATION(event_synchronize_returns_early) {
  table.event_synchronize = [](Event e) {
    flhal_status now = base.event_query(e);
    return now == FLHAL_NOT_READY ? FLHAL_OK : now;
  };
}
MUTATION(elapsed_in_microseconds) {
  table.event_elapsed_ns = [](Event from, Event to, uint64_t* out) {
    flhal_status s = base.event_elapsed_ns(from, to, out);
    *out /= 1000;
    return s;
  };
}
MUTATION(signal_comes_late) {
  static std::map<Event, bool> on_the_way;          // whether the event was destroyed meanwhile
  table.event_signal = [](Event e, flhal_status status) -> flhal_status {
    std::lock_guard lock(g_mutex);
    on_the_way[e] = false;
    start_thread([e, status] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3500));   // the case waits for 3 s
      base.event_signal(e, status);
      std::lock_guard lock(g_mutex);
      if (on_the_way[e]) base.event_destroy(e);
      on_the_way.erase(e);
    });
    return FLHAL_OK;
  };
  table.event_destroy = [](Event e) {
    std::lock_guard lock(g_mutex);
    if (on_the_way.count(e)) on_the_way[e] = true;
    else base.event_destroy(e);
  };
}

}  // namespace flhal::mutants
