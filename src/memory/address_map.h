// src/memory/address_map.h: from an address to its slab, in under 25 instructions.
//
// Idea: a two-level table over 48-bit addresses in granules of 64 KiB; leaves are mapped lazily by the kernel. A slab
// occupies whole granules. Readers take no lock: a slab is unpublished only after everything that could name it ended.
#pragma once

#include <flhal/memory.h>
#include <flhal/plugin.h>

#include <cstdint>

#include "core/device.h"
#include "core/status.h"

namespace flhal {

// One piece of memory that a plugin gave. Pools cut it into blocks.
struct Slab {
  uint64_t base = 0, bytes = 0;          // its range in the one address space
  flhal_p_memory* memory = nullptr;
  uint64_t device_address = 0;           // the plugin's address, 0 without FLHAL_CAP_ADDRESSES
  char* host = nullptr;                  // host pointer to its first byte, when the host can see it as it is
  Device* device = nullptr;
  uint32_t kind = 0;                     // FLHAL_MEM_*
  bool reserved_range = false;           // base is an inaccessible mapping of ours, not the plugin's address
  void* blocks = nullptr;                // the pool's index of its blocks
};

// What one lookup of an operand gives.
struct Located {
  const Slab* slab = nullptr;            // nullptr: not device memory
  uint64_t offset = 0;                   // address - slab->base
  uint64_t block_base = 0, block_bytes = 0;   // the allocation's exact bounds, as requested
};

class AddressMap {
 public:
  static const Slab* find(uint64_t address);              // the fast path; nullptr when unknown
  static Located locate(uint64_t address);                // with the allocation's bounds
  // Checks that [address, address + bytes) lies in one live allocation. FLHAL_E_INVALID with a text otherwise.
  static Status locate_range(uint64_t address, uint64_t bytes, const char* function, const char* operand, Located* out);

  // Gives a slab its range and publishes it. Where the plugin's address is not reserved in this process, or collides,
  // the range is a fresh inaccessible mapping.
  static Status publish(Slab* slab);
  static void unpublish(Slab* slab);
};

// The place of a located address, as plugins take it.
inline flhal_p_place place_of(const Slab* slab, uint64_t offset) {
  return {slab->memory, offset, nullptr};
}

}  // namespace flhal
