// src/memory/address_map.h: from an address to its slab and to the exact bounds of its allocation.
//
// Idea: a two-level table over 48-bit addresses in granules of 64 KiB; each entry points to the Span that covers the
// granule. A span is either one big block or many blocks of one size, so the block of an address is one multiplication
// away. Leaves (4 GiB each, 512 KiB of table) are mapped lazily by the kernel and never unmapped.
// Cost (callgrind, x86-64, inlined): find 16 instructions, locate 25, a limit of bench/instruction_limits.txt.
// Threads: readers take no lock. Spans are never given back to the host's allocator, and a slab is unpublished only after
// everything that could name it ended; so a stale address gives a wrong answer at worst, never a crash.
#pragma once

#include <flhal/memory.h>
#include <flhal/plugin.h>

#include <atomic>
#include <cstdint>

#include "core/device.h"
#include "core/status.h"

namespace flhal {

#define FLHAL_HIDDEN __attribute__((visibility("hidden")))

inline constexpr uint32_t kGranuleShift = 16;
inline constexpr uint64_t kGranule = 1ull << kGranuleShift;
inline constexpr uint64_t kAddressLimit = 1ull << 48;

class FreeIndex;
class BlockPool;
struct Arena;
struct BlockTable;

// One piece of memory that a plugin gave. Pools cut it into blocks.
struct Slab {
  uint64_t base = 0, bytes = 0;          // its range in the one address space
  flhal_p_memory* memory = nullptr;
  uint64_t device_address = 0;           // the plugin's address, 0 without FLHAL_CAP_ADDRESSES
  char* host = nullptr;                  // host pointer to its first byte, when the host can see it as it is
  Device* device = nullptr;
  uint32_t kind = 0;                     // FLHAL_MEM_*
  bool reserved_range = false;           // base is an inaccessible mapping of ours, not the plugin's address
  bool dead = false;                     // its device was reset: the range stays taken, the bytes are gone
  struct Span* first = nullptr;          // its spans, in address order by next_phys
};

// A run of granules inside a slab: free, one big block, or many blocks of one size class.
struct Span {
  enum Kind : uint8_t { kUnused, kFree, kBig, kSmall };

  uint64_t base = 0, bytes = 0;
  uint64_t magic = 0;                    // block number = offset * magic >> kMagicShift; 0: one block
  uint64_t block_bytes = 0;              // of one block; the whole span when it is one
  std::atomic<uint64_t>* requested = &own_requested;   // per block: bytes asked for; 0 = no live allocation
  Slab* slab = nullptr;
  Arena* arena = nullptr;                // the stream its blocks belong to; free spans: whose order they obey
  std::atomic<Arena*> cached_for{nullptr};   // the arena while threads may keep its blocks; nullptr: frees go to the pool
  uint32_t cache_slot = 0;
  uint32_t marked = 0;                   // blocks that are also used on other streams
  uint8_t size_class = 255;              // kSmall
  Kind kind = kUnused;
  bool mapped = false;                   // every granule's entry points here
  std::atomic<uint64_t> own_requested{0};

  Span *prev_phys = nullptr, *next_phys = nullptr;     // neighbours in the slab
  Span *prev = nullptr, *next = nullptr;               // in a free index, or in an arena's list of partly free spans
  FreeIndex* index = nullptr;            // kFree: where it is listed
  uint64_t free_sequence = 0;            // kFree in a stream's index: reached at this point it is free for all
  BlockTable* table = nullptr;           // kSmall
  uint32_t n_blocks = 0, n_free = 0;     // kSmall
  bool listed = false;                   // kSmall: in its arena's list
};
inline constexpr uint32_t kMagicShift = 44;   // exact for offsets below 1 MiB in blocks of 256 bytes to 256 KiB

// What one lookup of an operand gives.
struct Located {
  const Slab* slab = nullptr;            // nullptr: not device memory
  uint64_t offset = 0;                   // address - slab->base
  uint64_t block_base = 0, block_bytes = 0;   // the allocation's exact bounds, as requested; 0 bytes: it was freed
};

using GranuleEntry = std::atomic<Span*>;
struct GranuleTable {
  std::atomic<GranuleEntry*> root[1u << 16];
};
extern GranuleTable g_device_map FLHAL_HIDDEN;   // device memory
extern GranuleTable g_pinned_map FLHAL_HIDDEN;   // host memory of flhal_host_alloc

// The span that covers the address; nullptr when none does.
[[gnu::always_inline]] inline Span* span_at(const GranuleTable& table, uint64_t address) {
  // An address beyond kAddressLimit meets a span of the low 48 bits, and leaves its bounds below like any other.
  GranuleEntry* leaf = table.root[uint16_t(address >> 32)].load(std::memory_order_acquire);
  if (__builtin_expect(leaf == nullptr, 0)) return nullptr;
  Span* span = leaf[(address >> kGranuleShift) & 0xffff].load(std::memory_order_acquire);
  // The entry of a free granule may be stale: it then names a span that lies elsewhere.
  if (__builtin_expect(span == nullptr || address - span->base >= span->bytes, 0)) return nullptr;
  return span;
}

class AddressMap {
 public:
  static const Slab* find(uint64_t address) {             // nullptr when unknown
    Span* span = span_at(g_device_map, address);
    return span ? span->slab : nullptr;
  }
  [[gnu::always_inline]] static Located locate(uint64_t address) {   // with the allocation's bounds
    Located out;
    Span* span = span_at(g_device_map, address);
    if (__builtin_expect(span == nullptr, 0)) return out;
    uint64_t block = (address - span->base) * span->magic >> kMagicShift;
    out.slab = span->slab;
    out.offset = address - span->slab->base;
    out.block_base = span->base + block * span->block_bytes;
    out.block_bytes = span->requested[block].load(std::memory_order_relaxed);
    return out;
  }
  // Checks that [address, address + bytes) lies in one live allocation. FLHAL_E_INVALID with a text otherwise.
  static Status locate_range(uint64_t address, uint64_t bytes, const char* function, const char* operand, Located* out) {
    *out = locate(address);
    if (__builtin_expect(out->slab == nullptr || bytes > out->block_bytes ||
                             address - out->block_base > out->block_bytes - bytes || out->block_bytes == 0, 0)) {
      return range_failure(address, bytes, function, operand, *out);
    }
    return FLHAL_OK;
  }
  static Status range_failure(uint64_t address, uint64_t bytes, const char* function, const char* operand,
                              const Located& found);

  // Gives a slab its range and publishes it as one span (slab->first, made when it is nullptr). Where the plugin's
  // address is not reserved in this process, is not a multiple of the granule, or collides, the range is a fresh
  // inaccessible mapping. FLHAL_MEM_PINNED goes to the table of pinned memory, at its host pointer.
  static Status publish(Slab* slab);
  static void unpublish(Slab* slab);
  // Points the entries of all granules of the span to it.
  static void assign(Span* span);
  static const GranuleTable& table_of(const Slab& slab) {
    return slab.kind == FLHAL_MEM_PINNED ? g_pinned_map : g_device_map;
  }
};

// The place of a located address, as plugins take it.
inline flhal_p_place place_of(const Slab* slab, uint64_t offset) {
  return {slab->memory, offset, nullptr};
}

}  // namespace flhal
