// reference_plugins/host/memory.cc: slabs are anonymous mappings.
//
// Why not malloc: core wants whole 64 KiB granules, the pages must be zero cost until touched, and a freed slab must go
// back to the system at once. Mappings of 2 MiB or more are aligned for and advised into huge pages: a matrix product
// over 4 KiB pages loses some 10 % to TLB misses.
// The host sees the bytes as they are, so host_begin and host_end only compute a pointer.
#include "host_plugin.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace flhal::host {
namespace {

constexpr uint64_t kGranule = 64 * 1024;
constexpr uint64_t kHugePage = 2 * 1024 * 1024;
constexpr uint64_t kAskTheSystemFrom = 64 * 1024 * 1024;   // below, the 30 us of reading /proc would be felt

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// A mapping of `bytes` whose start is a multiple of `align`; nullptr when the system has none. Maps `align` more than
// needed and gives both ends back.
char* map_aligned(uint64_t bytes, uint64_t align) {
  void* got = mmap(nullptr, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  char* raw = static_cast<char*>(got);
  char* base = reinterpret_cast<char*>(round_up(reinterpret_cast<uint64_t>(raw), align));
  if (base > raw) munmap(raw, base - raw);
  if (raw + align > base) munmap(base + bytes, raw + align - base);
  return base;
}

}  // namespace

flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  if (uint32_t needed = flhal_needed_extension(slab->next)) return needs_extension(device->plugin->host, "memory_alloc", needed);
  if (slab->bytes == 0 || (slab->align & (slab->align - 1)) != 0)
    return fail(device->plugin, FLHAL_E_INVALID,
                fmt::format("host: memory_alloc got {} bytes with alignment {}; bytes must be above 0 and the alignment a "
                            "power of two", slab->bytes, slab->align));
  if (slab->kind > FLHAL_MEM_SHARED)   // the three that there are, are one here
    return fail(device->plugin, FLHAL_E_UNSUPPORTED, fmt::format("host: memory_alloc got the kind {}; 0 to {} are known", slab->kind, FLHAL_MEM_SHARED));
  const uint64_t limit = device->plugin->machine.memory_bytes;
  if (slab->bytes > limit) return FLHAL_EXHAUSTED;
  const uint64_t bytes = round_up(slab->bytes, kGranule);
  const uint64_t align = std::max({slab->align, kGranule, bytes >= kHugePage ? kHugePage : 0});

  // The system promises pages it does not have and kills later; say no while core can still trim and retry.
  if (device->slab_bytes.fetch_add(bytes) + bytes > limit ||
      (bytes >= kAskTheSystemFrom && bytes > available_memory())) {
    device->slab_bytes.fetch_sub(bytes);
    return FLHAL_EXHAUSTED;
  }
  auto* memory = new (std::nothrow) flhal_p_memory;
  char* base = memory ? map_aligned(bytes, align) : nullptr;
  if (!base) {
    delete memory;
    device->slab_bytes.fetch_sub(bytes);
    return FLHAL_EXHAUSTED;
  }
  if (bytes >= kHugePage) madvise(base, bytes, MADV_HUGEPAGE);   // only advice; a kernel without them says no
  *memory = {base, bytes};
  slab->memory = memory;
  slab->address = reinterpret_cast<uint64_t>(base);
  slab->host = base;
  return FLHAL_OK;
}

void memory_free(flhal_p_device* device, flhal_p_memory* memory) {
  if (!memory) return;
  munmap(memory->base, memory->bytes);
  device->slab_bytes.fetch_sub(memory->bytes);
  delete memory;
}

flhal_status memory_budget(flhal_p_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  const uint64_t total = device->plugin->machine.memory_bytes;
  try {
    *free_bytes = std::min(total, available_memory());
  } catch (...) {   // out of memory while reading /proc
    *free_bytes = 0;
  }
  *total_bytes = total;
  return FLHAL_OK;
}

flhal_status host_begin(flhal_p_device*, const flhal_p_place* place, uint64_t, uint32_t, void** host) {
  *host = pointer_to(*place);
  return FLHAL_OK;
}

flhal_status host_end(flhal_p_device*, const flhal_p_place*, uint64_t, uint32_t, void*) { return FLHAL_OK; }

}  // namespace flhal::host
