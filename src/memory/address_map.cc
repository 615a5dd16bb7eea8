// src/memory/address_map.cc: publishing slabs in the one address space; see address_map.h for reading.
//
// Threads: g_publish_mutex serialises writers of ranges; entries of one slab's granules are written by its pool alone.
#include "memory/address_map.h"

#include <sys/mman.h>

#include <mutex>
#include <vector>

namespace flhal {

GranuleTable g_device_map;               // 512 KiB of zero pages each; the kernel backs what is touched
GranuleTable g_pinned_map;

namespace {

std::mutex g_publish_mutex;
constexpr uint64_t kLeafBytes = sizeof(GranuleEntry) << 16;

GranuleTable& writable_table(const Slab& slab) { return slab.kind == FLHAL_MEM_PINNED ? g_pinned_map : g_device_map; }

GranuleEntry* leaf_for(GranuleTable& table, uint64_t address) {   // g_publish_mutex is held
  std::atomic<GranuleEntry*>& root = table.root[address >> 32];
  GranuleEntry* leaf = root.load(std::memory_order_acquire);
  if (leaf) return leaf;
  void* fresh = mmap(nullptr, kLeafBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  leaf = static_cast<GranuleEntry*>(fresh);
  root.store(leaf, std::memory_order_release);
  return leaf;
}

bool free_range(const GranuleTable& table, uint64_t base, uint64_t bytes) {
  for (uint64_t a = base; a < base + bytes; a += kGranule) {
    GranuleEntry* leaf = table.root[a >> 32].load(std::memory_order_acquire);
    if (leaf == nullptr) {
      a = (a | 0xffffffffull) - kGranule + 1;   // nothing in these 4 GiB
      continue;
    }
    if (leaf[(a >> kGranuleShift) & 0xffff].load(std::memory_order_relaxed) != nullptr) return false;
  }
  return true;
}

// An inaccessible mapping of ours, on a granule boundary, that collides with nothing published.
uint64_t reserve_range(const GranuleTable& table, uint64_t bytes) {
  std::vector<std::pair<void*, uint64_t>> refused;
  uint64_t found = 0;
  // A plugin that claims addresses it did not reserve may sit where the kernel puts us; then the next place is tried.
  for (int attempt = 0; attempt < 64 && found == 0; ++attempt) {
    uint64_t mapped_bytes = bytes + kGranule;
    void* raw = mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) break;
    uint64_t start = reinterpret_cast<uint64_t>(raw);
    uint64_t base = (start + kGranule - 1) & ~(kGranule - 1);
    if (base + bytes > kAddressLimit || !free_range(table, base, bytes)) {
      refused.push_back({raw, mapped_bytes});
      continue;
    }
    if (base > start) munmap(raw, base - start);
    uint64_t end = start + mapped_bytes;
    if (end > base + bytes) munmap(reinterpret_cast<void*>(base + bytes), end - base - bytes);
    found = base;
  }
  for (auto& [raw, mapped_bytes] : refused) munmap(raw, mapped_bytes);
  return found;
}

}  // namespace

Status AddressMap::publish(Slab* slab) {
  GranuleTable& table = writable_table(*slab);
  uint64_t range_bytes = (slab->bytes + kGranule - 1) & ~(kGranule - 1);
  uint64_t native = 0;
  if (slab->kind == FLHAL_MEM_PINNED) native = reinterpret_cast<uint64_t>(slab->host);
  else if (slab->device_address && slab->device->has(FLHAL_CAP_ADDRESSES_OURS)) native = slab->device_address;
  else if (slab->host) native = reinterpret_cast<uint64_t>(slab->host);

  std::lock_guard lock(g_publish_mutex);
  bool usable = native != 0 && native % kGranule == 0 && slab->bytes == range_bytes && native < kAddressLimit &&
                range_bytes <= kAddressLimit - native && free_range(table, native, range_bytes);
  if (usable) {
    slab->base = native;
    slab->reserved_range = false;
  } else if (slab->kind == FLHAL_MEM_PINNED) {
    return fail(FLHAL_E_INTERNAL, "pinned host memory at {:#x} ({} bytes) cannot be published; it must be a multiple of {} "
                "and not be there yet", native, slab->bytes, kGranule);
  } else {
    slab->base = reserve_range(table, range_bytes);
    if (slab->base == 0) {
      return fail(FLHAL_E_HOST_MEMORY, "no address range of {} bytes is left in this process for memory of {}; raise the "
                  "limit of virtual memory (ulimit -v)", range_bytes, slab->device->name);
    }
    slab->reserved_range = true;
  }
  if (slab->first == nullptr) {          // nobody cuts it: one live block
    slab->first = new Span();
    slab->first->kind = Span::kBig;
    slab->first->own_requested.store(slab->bytes, std::memory_order_relaxed);
  }
  Span* span = slab->first;
  span->slab = slab;
  span->base = slab->base;
  span->bytes = range_bytes;
  span->block_bytes = range_bytes;
  for (uint64_t a = span->base; a < span->base + range_bytes; a = (a | 0xffffffffull) + 1) {
    if (leaf_for(table, a) == nullptr) {
      if (slab->reserved_range) munmap(reinterpret_cast<void*>(slab->base), range_bytes);
      return fail(FLHAL_E_HOST_MEMORY, "no host memory for the address table of {}", slab->device ? slab->device->name : "the host");
    }
  }
  assign(span);
  return FLHAL_OK;
}

void AddressMap::assign(Span* span) {
  GranuleTable& table = writable_table(*span->slab);
  for (uint64_t a = span->base; a < span->base + span->bytes; a += kGranule) {
    GranuleEntry* leaf = table.root[a >> 32].load(std::memory_order_relaxed);
    leaf[(a >> kGranuleShift) & 0xffff].store(span, std::memory_order_release);
  }
  span->mapped = true;
}

void AddressMap::unpublish(Slab* slab) {
  GranuleTable& table = writable_table(*slab);
  uint64_t range_bytes = (slab->bytes + kGranule - 1) & ~(kGranule - 1);
  std::lock_guard lock(g_publish_mutex);
  for (uint64_t a = slab->base; a < slab->base + range_bytes; a += kGranule) {
    GranuleEntry* leaf = table.root[a >> 32].load(std::memory_order_relaxed);
    leaf[(a >> kGranuleShift) & 0xffff].store(nullptr, std::memory_order_release);
  }
  if (slab->reserved_range) munmap(reinterpret_cast<void*>(slab->base), range_bytes);
}

Status AddressMap::range_failure(uint64_t address, uint64_t bytes, const char* function, const char* operand,
                                 const Located& found) {
  if (found.slab == nullptr) {
    return fail(FLHAL_E_INVALID, "{}: {} address {:#x} is not device memory; give an address inside a live allocation of "
                "flhal_alloc", function, operand, address);
  }
  if (found.slab->dead) {
    return fail(FLHAL_E_INVALID, "{}: {} address {:#x} lies in memory of {} from before its reset; allocate it anew",
                function, operand, address, found.slab->device->name);
  }
  if (found.block_bytes == 0) {
    return fail(FLHAL_E_INVALID, "{}: {} address {:#x} lies in memory of {} that is not allocated (freed already?)",
                function, operand, address, found.slab->device->name);
  }
  uint64_t begin = address - found.block_base;
  uint64_t left = begin < found.block_bytes ? found.block_bytes - begin : 0;
  return fail(FLHAL_E_INVALID, "{}: {} range [{}, {}) leaves the allocation of {} bytes; at most {} bytes are left there",
              function, operand, begin, begin + bytes, found.block_bytes, left);
}

}  // namespace flhal
