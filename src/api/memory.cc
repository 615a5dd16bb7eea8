// src/api/memory.cc: the exports of flhal/memory.h. flhal_alloc and flhal_free try the thread's cache before anything else.
#include <flhal/memory.h>

#include <algorithm>
#include <cstring>

#include "api/api_call.h"
#include "core/fork_guard.h"
#include "core/stream.h"
#include "memory/host_access.h"
#include "memory/pinned.h"
#include "memory/pool.h"
#include "memory/thread_cache.h"

using namespace flhal;

namespace {

[[gnu::noinline]] flhal_status alloc_slowly(flhal_stream* stream, uint64_t bytes, flhal_addr* out_address) {
  return api_call("flhal_alloc", [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_alloc"));
    if (out_address == nullptr) return fail(FLHAL_E_INVALID, "flhal_alloc: out_address is NULL; give the address of the result");
    FLHAL_ASSIGN(uint64_t address, pool_allocate(stream_from(stream), bytes));
    *out_address = address;
    return FLHAL_OK;
  });
}

[[gnu::noinline]] flhal_status free_slowly(flhal_addr address) {
  return api_call("flhal_free", [&]() -> Status { return pool_free(address); });
}

Status check_open_device(flhal_device* device, const char* function) {
  FLHAL_TRY(check_device(device, function));
  return device_from(device)->open();
}

}  // namespace

extern "C" {

flhal_status flhal_alloc(flhal_stream* stream, uint64_t bytes, flhal_addr* out_address) {
  Stream* s = stream_from(stream);
  // A released stream and a forked child do not match this thread's cache; what is no stream at all must not be asked which.
  if (__builtin_expect(s != nullptr && s->tag == kStreamTag && out_address != nullptr, 1)) {
    if (uint64_t address = take_cached(s, bytes)) {
      *out_address = address;
      return FLHAL_OK;
    }
  }
  return alloc_slowly(stream, bytes, out_address);
}

flhal_status flhal_free(flhal_addr address) {
  if (__builtin_expect(give_cached(address), 1)) return FLHAL_OK;
  return free_slowly(address);
}

flhal_status flhal_memory_used_on(flhal_addr address, flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_memory_used_on"));
    return pool_used_on(address, stream_from(stream));
  });
}

flhal_status flhal_memory_lookup(flhal_addr address, flhal_memory_place* out_place) {
  return api_call(__func__, [&]() -> Status {
    if (out_place == nullptr) return fail(FLHAL_E_INVALID, "flhal_memory_lookup: out_place is NULL; give the address of the result");
    Located at = AddressMap::locate(address);
    if (at.slab == nullptr || at.block_bytes == 0 || address - at.block_base >= at.block_bytes) {
      return fail(FLHAL_E_NOT_FOUND, "flhal_memory_lookup: {:#x} lies in no live device allocation", address);
    }
    flhal_memory_place place{};
    place.struct_size = out_place->struct_size;
    place.device = at.slab->device->index;
    place.base = at.block_base;
    place.bytes = at.block_bytes;
    place.host = at.slab->host && at.slab->device->has(FLHAL_CAP_HOST_VISIBLE) ? at.slab->host + at.offset : nullptr;
    std::memcpy(out_place, &place, std::min<size_t>(out_place->struct_size, sizeof place));
    return FLHAL_OK;
  });
}

flhal_status flhal_host_alloc(flhal_device* device, uint64_t bytes, void** out_pointer) {
  return api_call(__func__, [&]() -> Status {
    if (forked()) return forked_failure("flhal_host_alloc");
    if (out_pointer == nullptr) return fail(FLHAL_E_INVALID, "flhal_host_alloc: out_pointer is NULL; give the address of the result");
    if (device) FLHAL_TRY(check_open_device(device, "flhal_host_alloc"));
    FLHAL_ASSIGN(void* pointer, pinned_alloc(device ? device_from(device) : nullptr, bytes));
    *out_pointer = pointer;
    return FLHAL_OK;
  });
}

flhal_status flhal_host_free(void* pointer) {
  return api_call(__func__, [&]() -> Status { return pinned_free(pointer); });
}

flhal_status flhal_host_is_pinned(const void* pointer) { return is_pinned(pointer) ? FLHAL_OK : FLHAL_DECLINED; }

flhal_status flhal_host_used_on(const void* pointer, flhal_stream* stream) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_host_used_on"));
    return pinned_used_on(pointer, stream_from(stream));
  });
}

flhal_status flhal_host_begin(flhal_stream* stream, flhal_addr address, uint64_t bytes, uint32_t access, void** out_host,
                              uint64_t* out_ticket) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_host_begin"));
    if (out_host == nullptr || out_ticket == nullptr) {
      return fail(FLHAL_E_INVALID, "flhal_host_begin: out_host or out_ticket is NULL; give the addresses of both results");
    }
    FLHAL_ASSIGN(HostView view, host_begin(stream_from(stream), address, bytes, access));
    *out_host = view.host;
    *out_ticket = view.ticket;
    return FLHAL_OK;
  });
}

flhal_status flhal_host_end(flhal_stream* stream, uint64_t ticket) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_host_end"));
    return host_end(stream_from(stream), ticket);
  });
}

flhal_status flhal_memory_get_stats(flhal_device* device, flhal_memory_stats* out_stats) {
  return api_call(__func__, [&]() -> Status {
    if (out_stats == nullptr) return fail(FLHAL_E_INVALID, "flhal_memory_get_stats: out_stats is NULL; give the address of the result");
    FLHAL_TRY(check_open_device(device, "flhal_memory_get_stats"));
    device_from(device)->pool->stats(out_stats);
    return FLHAL_OK;
  });
}

flhal_status flhal_memory_reset_peaks(flhal_device* device) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_open_device(device, "flhal_memory_reset_peaks"));
    device_from(device)->pool->reset_peaks();
    return FLHAL_OK;
  });
}

flhal_status flhal_memory_trim(flhal_device* device) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_open_device(device, "flhal_memory_trim"));
    return device_from(device)->pool->trim();
  });
}

}  // extern "C"
