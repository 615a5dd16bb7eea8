// src/memory/host_access.cc: views of device memory for the host; see host_access.h.
//
// Three ways, best first: the plugin's own host_begin/host_end; the slab's host pointer when the chip says that the host
// sees its memory (FLHAL_CAP_HOST_VISIBLE); a piece of pinned memory with a copy before and, for writes, after.
// Threads: a mutex guards the table of open views only.
#include "memory/host_access.h"

#include <mutex>
#include <utility>
#include <vector>

#include "memory/copy_engine.h"
#include "memory/kept_ranges.h"
#include "memory/pinned.h"

namespace flhal {

namespace {

struct View {
  uint32_t generation = 1;              // of the place in the table; half of the ticket
  bool open = false;
  enum Way { kAlias, kPlugin, kStaged } way = kAlias;
  Device* device = nullptr;
  uint64_t address = 0, bytes = 0;
  flhal_p_place place{};                // kPlugin
  uint32_t access = 0;
  char* staging = nullptr;
  void* plugin_host = nullptr;          // what host_begin gave
};

struct Views {
  std::mutex mutex;
  std::vector<View> places;
  std::vector<uint32_t> unused;
};
Views& views() {
  static Views& table = *new Views;     // never destroyed: threads may run at exit
  return table;
}

uint64_t remember(View&& view) {
  Views& table = views();
  std::lock_guard lock(table.mutex);
  uint32_t index;
  if (table.unused.empty()) {
    index = uint32_t(table.places.size());
    table.places.emplace_back();
  } else {
    index = table.unused.back();
    table.unused.pop_back();
  }
  View& place = table.places[index];
  view.generation = place.generation;
  view.open = true;
  place = view;
  return uint64_t(view.generation) << 32 | (index + 1u);
}

// Closes the view of `ticket` and gives it in *out, of which only `way` is written for one that needs no end.
Status take(uint64_t ticket, Device* device, View* out) {
  Views& table = views();
  std::lock_guard lock(table.mutex);
  uint32_t index = uint32_t(ticket) - 1u;
  if (index >= table.places.size() || !table.places[index].open || table.places[index].generation != ticket >> 32) {
    return fail(FLHAL_E_INVALID, "flhal_host_end: {:#x} is not an open ticket; give one of flhal_host_begin, once", ticket);
  }
  View& place = table.places[index];
  if (place.device != device) {
    return fail(FLHAL_E_INVALID, "flhal_host_end: ticket {:#x} is of {}, the stream is of {}; give a stream of the same device",
                ticket, place.device->name, device->name);
  }
  if (place.way == View::kAlias) out->way = View::kAlias;
  else *out = place;
  place.open = false;
  if (++place.generation == 0) place.generation = 1;
  table.unused.push_back(index);
  return FLHAL_OK;
}

}  // namespace

uint64_t host_views_open() {
  Views& table = views();
  std::lock_guard lock(table.mutex);
  return table.places.size() - table.unused.size();
}

Result<HostView> host_begin(Stream* stream, uint64_t address, uint64_t bytes, uint32_t access) {
  if ((access & (FLHAL_READ | FLHAL_WRITE)) == 0 || (access & ~(FLHAL_READ | FLHAL_WRITE | FLHAL_DISCARD)) != 0 ||
      ((access & FLHAL_DISCARD) && !(access & FLHAL_WRITE))) {
    return fail(FLHAL_E_INVALID, "flhal_host_begin: access {:#x}; give FLHAL_READ, FLHAL_WRITE or both, and FLHAL_DISCARD only "
                "with FLHAL_WRITE", access);
  }
  Device* device = stream->device;
  View view;
  view.device = device;
  view.address = address;
  view.bytes = bytes;
  view.access = access;
  if (bytes == 0) {                     // a view of nothing: legal, and never looked at
    static char nothing[64];
    return HostView{nothing, remember(std::move(view))};
  }
  Located at;
  FLHAL_TRY(locate_for(stream, address, bytes, "flhal_host_begin", "address", &at));
  if (at.slab->device != device) {
    return fail(FLHAL_E_INVALID, "flhal_host_begin: address {:#x} lies on {}, the stream is of {}; give a stream of {}", address,
                at.slab->device->name, device->name, at.slab->device->name);
  }
  FLHAL_TRY(stream->synchronize());
  Plugin& plugin = *device->plugin;
  if (plugin.has_host_access) {
    flhal_p_place place = place_of(at.slab, at.offset);
    void* host = nullptr;
    flhal_status answer;
    {
      auto serial = plugin.lock();
      answer = plugin_call(plugin.table.host_begin, device->handle, &place, bytes, access, &host);
    }
    if (answer == FLHAL_OK && host) {
      view.way = View::kPlugin;
      view.place = place;
      view.plugin_host = host;
      return HostView{host, remember(std::move(view))};
    }
    if (answer < 0 && answer != FLHAL_E_UNSUPPORTED) {
      Status failed = plugin_answer(plugin, "host_begin", answer);
      if (failed.code() == FLHAL_E_DEVICE_LOST) device->mark_lost(last_error_text().c_str());
      return failed;
    }
  }
  if (device->has(FLHAL_CAP_HOST_VISIBLE) && at.slab->host) {
    view.way = View::kAlias;
    return HostView{at.slab->host + at.offset, remember(std::move(view))};
  }
  // As aligned as the address, up to 64: pinned blocks begin at multiples of 256, so the address's own remainder is kept.
  uint64_t lead = address % 64;
  FLHAL_ASSIGN(void* memory, pinned_alloc(device, bytes + lead));
  view.way = View::kStaged;
  view.staging = static_cast<char*>(memory);
  char* host = view.staging + lead;
  if (!(access & FLHAL_DISCARD)) {
    Status read = copy_bytes(stream, reinterpret_cast<uint64_t>(host), address, bytes, 0);
    if (!read.ok()) {
      (void)pinned_free(memory);
      return read;
    }
  }
  return HostView{host, remember(std::move(view))};
}

Status host_end(Stream* stream, uint64_t ticket) {
  View view;
  FLHAL_TRY(take(ticket, stream->device, &view));
  if (view.way == View::kAlias) return FLHAL_OK;
  Device* device = view.device;
  if (view.way == View::kPlugin) {
    flhal_status answer;
    {
      auto serial = device->plugin->lock();
      answer = plugin_call(device->plugin->table.host_end, device->handle, &view.place, view.bytes, view.access, view.plugin_host);
    }
    return plugin_answer(*device->plugin, "host_end", answer);
  }
  Status written = FLHAL_OK;
  if (view.access & FLHAL_WRITE) {
    char* host = view.staging + view.address % 64;
    written = copy_bytes(stream, view.address, reinterpret_cast<uint64_t>(host), view.bytes, FLHAL_COPY_MAY_RETURN_EARLY);
  }
  (void)pinned_free(view.staging);      // in order: the copy named the stream
  return written;
}

}  // namespace flhal
