// src/api/stream.cc: the exports of flhal/stream.h.
#include <flhal/stream.h>

#include "api/api_call.h"
#include "core/event.h"
#include "core/fork_guard.h"
#include "core/stream.h"

using namespace flhal;

static Status check_out(const void* out, const char* function, const char* name) {
  return out ? Status() : fail(FLHAL_E_INVALID, "{}: {} is NULL; give the address of the result", function, name);
}

extern "C" {

flhal_stream* flhal_stream_default(flhal_device* device) {
  flhal_stream* found = nullptr;
  flhal_status status = api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_stream_default"));
    Device* d = device_from(device);
    FLHAL_TRY(d->open());
    found = handle_of(d->default_stream);
    return FLHAL_OK;
  });
  return status == FLHAL_OK ? found : nullptr;
}

flhal_status flhal_stream_create(flhal_device* device, int32_t priority, flhal_stream** out_stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_stream_create"));
    FLHAL_TRY(check_out(out_stream, "flhal_stream_create", "out_stream"));
    Device* d = device_from(device);
    FLHAL_TRY(d->open());
    FLHAL_ASSIGN(Stream * stream, make_stream(d, priority));
    *out_stream = handle_of(stream);
    return FLHAL_OK;
  });
}

flhal_status flhal_stream_retain(flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_stream_retain"));
    if (!stream_from(stream)->is_default) stream_from(stream)->references.fetch_add(1, std::memory_order_relaxed);
    return FLHAL_OK;
  });
}

flhal_status flhal_stream_release(flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    if (forked()) return FLHAL_OK;          // a child gives back nothing and is told nothing
    FLHAL_TRY(check_stream(stream, "flhal_stream_release"));
    return release_stream(stream_from(stream));
  });
}

flhal_device* flhal_stream_device(flhal_stream* stream) {
  return check_stream(stream, "flhal_stream_device").ok() ? handle_of(stream_from(stream)->device) : nullptr;
}

uint64_t flhal_stream_id(flhal_stream* stream) {
  return check_stream(stream, "flhal_stream_id").ok() ? stream_from(stream)->id : 0;
}

flhal_status flhal_stream_query(flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_stream_query"));
    return stream_from(stream)->query();
  });
}

flhal_status flhal_stream_synchronize(flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_stream_synchronize"));
    return stream_from(stream)->synchronize();
  });
}

flhal_status flhal_stream_clear_error(flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_stream_clear_error"));
    stream_from(stream)->clear_error();
    return FLHAL_OK;
  });
}

flhal_status flhal_event_create(uint32_t flags, flhal_event** out_event) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_out(out_event, "flhal_event_create", "out_event"));
    if (flags & ~FLHAL_EVENT_WITH_TIMING) {
      return fail(FLHAL_E_INVALID, "flhal_event_create: flags {:#x} are not known; give 0 or FLHAL_EVENT_WITH_TIMING", flags);
    }
    *out_event = handle_of(new Event(flags));
    return FLHAL_OK;
  });
}

flhal_status flhal_event_retain(flhal_event* event) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(event, "flhal_event_retain"));
    event_from(event)->references.fetch_add(1, std::memory_order_relaxed);
    return FLHAL_OK;
  });
}

flhal_status flhal_event_release(flhal_event* event) {
  return api_call(__func__, [&]() -> Status {
    if (forked()) return FLHAL_OK;
    FLHAL_TRY(check_event(event, "flhal_event_release"));
    if (event_from(event)->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete event_from(event);
    return FLHAL_OK;
  });
}

flhal_status flhal_event_record(flhal_event* event, flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(event, "flhal_event_record"));
    FLHAL_TRY(check_stream(stream, "flhal_event_record"));
    return event_from(event)->record(stream_from(stream));
  });
}

flhal_status flhal_event_wait(flhal_event* event, flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(event, "flhal_event_wait"));
    FLHAL_TRY(check_stream(stream, "flhal_event_wait"));
    return event_from(event)->wait(stream_from(stream));
  });
}

flhal_status flhal_event_query(flhal_event* event) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(event, "flhal_event_query"));
    return event_from(event)->query();
  });
}

flhal_status flhal_event_synchronize(flhal_event* event) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(event, "flhal_event_synchronize"));
    return event_from(event)->synchronize();
  });
}

flhal_status flhal_event_elapsed_ns(flhal_event* from, flhal_event* to, uint64_t* out_ns) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_event(from, "flhal_event_elapsed_ns"));
    FLHAL_TRY(check_event(to, "flhal_event_elapsed_ns"));
    FLHAL_TRY(check_out(out_ns, "flhal_event_elapsed_ns", "out_ns"));
    return Event::elapsed_ns(event_from(from), event_from(to), out_ns);
  });
}

}  // extern "C"
