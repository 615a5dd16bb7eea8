// tests/memory/tiny_device.h: a ten-slot plugin made inside the test, for what real plugins never do: equal addresses on two
// devices, crooked addresses, memory that runs out at a chosen byte.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "core/device.h"
#include "core/event.h"
#include "core/stream.h"
#include "memory/block_pool.h"
#include "memory/pinned.h"

// The same as in chips.h.
#ifndef REQUIRE_OK
#define REQUIRE_OK(expression)                         \
  do {                                                 \
    ::flhal::Status required_ = (expression);          \
    INFO(::flhal::last_error_text());                  \
    REQUIRE(required_.code() == FLHAL_OK);             \
  } while (0)
#endif

namespace flhal::test {

struct TinyMemory {
  char* bytes;
  uint64_t size;
};

// What flhal_p_device of this plugin is.
struct TinyChip {
  uint64_t memory_bytes = 64 << 20;
  uint64_t fixed_address = 0;            // the address of every slab; 0: the memory's own
  uint64_t shift = 0;                    // added to the host pointer, to make it crooked
  bool host_visible = false;             // slabs tell their host pointer
  bool fill_refused = false;
  uint64_t used = 0;
  std::set<TinyMemory*> live;
  uint64_t n_copies = 0, n_fills = 0;
};

inline char* tiny_pointer(const flhal_p_place& place) {
  return place.memory ? reinterpret_cast<TinyMemory*>(place.memory)->bytes + place.offset : static_cast<char*>(place.host);
}

class TinyDevice {
 public:
  explicit TinyDevice(const char* name, uint64_t caps = 0, uint64_t memory_bytes = 64 << 20) {
    static std::atomic<uint32_t> next_index{1000};
    chip.memory_bytes = memory_bytes;
    plugin.id = "test.tiny";
    auto& t = plugin.table;
    t.memory_alloc = [](flhal_p_device* d, flhal_p_slab_v1* slab) -> flhal_status {
      auto* chip = reinterpret_cast<TinyChip*>(d);
      if (slab->kind != FLHAL_MEM_DEVICE) return FLHAL_E_UNSUPPORTED;
      if (chip->used + slab->bytes > chip->memory_bytes) return FLHAL_EXHAUSTED;
      auto* m = new TinyMemory{static_cast<char*>(aligned_alloc(slab->align, slab->bytes + slab->align)) + chip->shift, slab->bytes};
      chip->used += slab->bytes;
      chip->live.insert(m);
      slab->memory = reinterpret_cast<flhal_p_memory*>(m);
      slab->address = chip->fixed_address ? chip->fixed_address : reinterpret_cast<uint64_t>(m->bytes);
      slab->host = chip->host_visible ? m->bytes : nullptr;
      return FLHAL_OK;
    };
    t.memory_free = [](flhal_p_device* d, flhal_p_memory* memory) {
      auto* chip = reinterpret_cast<TinyChip*>(d);
      auto* m = reinterpret_cast<TinyMemory*>(memory);
      chip->used -= m->size;
      chip->live.erase(m);
      free(m->bytes - chip->shift);
      delete m;
    };
    t.copy = [](flhal_p_device* d, flhal_p_stream*, const flhal_p_copy_v1* c) -> flhal_status {
      ++reinterpret_cast<TinyChip*>(d)->n_copies;
      for (uint64_t r = 0; r < c->rows; ++r)
        memcpy(tiny_pointer(c->dst) + r * c->dst_pitch, tiny_pointer(c->src) + r * c->src_pitch, c->bytes);
      return FLHAL_OK;
    };
    t.fill = [](flhal_p_device* d, flhal_p_stream*, const flhal_p_place* at, uint64_t bytes, const void* pattern,
                uint32_t n) -> flhal_status {
      if (reinterpret_cast<TinyChip*>(d)->fill_refused) return FLHAL_E_UNSUPPORTED;
      ++reinterpret_cast<TinyChip*>(d)->n_fills;
      for (uint64_t i = 0; i < bytes; i += n) memcpy(tiny_pointer(*at) + i, pattern, n);
      return FLHAL_OK;
    };
    device.name = name;
    device.index = next_index++;
    device.plugin = &plugin;
    device.handle = reinterpret_cast<flhal_p_device*>(&chip);
    device.info.caps = caps;
    device.info.memory_bytes = memory_bytes;
    device.state.store(FLHAL_DEVICE_STATE_OPEN);
    device.default_stream = *make_stream(&device, 0);
    device.default_stream->is_default = true;
    device.pool = *make_pool(&device);
  }
  ~TinyDevice() {
    close_streams(&device);
    close_pinned(&device);
    close_pool(&device);
  }
  Stream* stream() { return device.default_stream; }
  BlockPool* pool() { return static_cast<BlockPool*>(device.pool); }
  flhal_memory_stats stats() {
    flhal_memory_stats s{};
    s.struct_size = sizeof s;
    device.pool->stats(&s);
    return s;
  }
  uint64_t alloc(uint64_t bytes) {
    auto got = pool_allocate(stream(), bytes);
    return got.ok() ? *got : 0;
  }

  TinyChip chip;
  Plugin plugin;
  Device& device = *new Device();        // leaked: stale handles may be looked at after the test
};

}  // namespace flhal::test
