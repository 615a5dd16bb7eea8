// conformance/mutants/memory.cc: wrong in slabs and views.
#include <map>
#include <mutex>

#include "mutant.h"

namespace flhal::mutants {

MUTATION(slabs_share_memory) {
  struct Kept { flhal_p_slab_v1 slab; int users; };
  static std::map<Memory, Kept> live;
  static std::mutex mutex;
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) -> flhal_status {
    std::lock_guard lock(mutex);
    for (auto& [memory, kept] : live)
      if (kept.slab.kind == slab->kind && kept.slab.bytes >= slab->bytes) {
        ++kept.users;
        slab->memory = memory, slab->address = kept.slab.address, slab->host = kept.slab.host;
        return FLHAL_OK;
      }
    flhal_status s = base.memory_alloc(d, slab);
    if (s == FLHAL_OK) live[slab->memory] = {*slab, 1};
    return s;
  };
  table.memory_free = [](Device d, Memory m) {
    std::lock_guard lock(mutex);
    if (--live[m].users > 0) return;
    live.erase(m);
    base.memory_free(d, m);
  };
}
MUTATION(address_is_not_aligned) {
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    flhal_status s = base.memory_alloc(d, slab);
    if (s == FLHAL_OK && slab->address != 0) slab->address += 8;
    return s;
  };
}
MUTATION(address_without_the_capability) {
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    flhal_status s = base.memory_alloc(d, slab);
    if (s == FLHAL_OK) slab->address = 0x100000;
    return s;
  };
}
MUTATION(full_memory_is_an_error) {
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    flhal_status s = base.memory_alloc(d, slab);
    return s == FLHAL_EXHAUSTED ? refuse(FLHAL_E_OUT_OF_MEMORY, "mutant: memory_alloc: the chip is full") : s;
  };
}
MUTATION(every_kind_is_device_memory) {
  table.memory_alloc = [](Device d, flhal_p_slab_v1* slab) {
    uint32_t kind = slab->kind;
    slab->kind = FLHAL_MEM_DEVICE;
    flhal_status s = base.memory_alloc(d, slab);
    slab->kind = kind;
    return s;
  };
}
MUTATION(free_forgets_the_memory) {
  table.memory_free = [](Device, Memory) {};
}
MUTATION(view_ignores_the_offset) {
  table.host_begin = [](Device d, Place place, uint64_t bytes, uint32_t access, void** out) {
    flhal_p_place start = {place->memory, 0, place->host};
    return base.host_begin(d, &start, bytes, access, out);
  };
  table.host_end = [](Device d, Place place, uint64_t bytes, uint32_t access, void* view) {
    flhal_p_place start = {place->memory, 0, place->host};
    return base.host_end(d, &start, bytes, access, view);
  };
}
MUTATION(view_loses_writes) {
  table.host_begin = [](Device d, Place place, uint64_t bytes, uint32_t, void** out) { return base.host_begin(d, place, bytes, FLHAL_READ, out); };
  table.host_end = [](Device d, Place place, uint64_t bytes, uint32_t, void* view) { return base.host_end(d, place, bytes, FLHAL_READ, view); };
}

}  // namespace flhal::mutants
