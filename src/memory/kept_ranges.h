// src/memory/kept_ranges.h: where the operands of a queued call lie, found when it was queued.
//
// A caller may free an operand as soon as its call is queued; the block is not reused before the call has run, but the
// address map no longer knows it as an allocation. So a queued call keeps what the lookup gave, and whatever runs for it on
// the worker's inner stream (Stream::kept) asks here first.
#pragma once

#include <cstdint>

#include "core/stream.h"
#include "memory/address_map.h"

namespace flhal {

struct KeptRange {
  uint64_t begin = 0, bytes = 0;         // as the application addresses it
  const Slab* slab = nullptr;
};

class KeptRanges {
 public:
  KeptRanges(const KeptRange* ranges, uint32_t n) : ranges_(ranges), n_(n) {}
  bool find(uint64_t address, uint64_t bytes, Located* out) const {
    for (uint32_t i = 0; i < n_; ++i) {
      const KeptRange& r = ranges_[i];
      if (r.slab == nullptr || address - r.begin >= r.bytes || bytes > r.bytes - (address - r.begin)) continue;
      *out = {r.slab, address - r.slab->base, r.begin, r.bytes};
      return true;
    }
    return false;
  }

 private:
  const KeptRange* const ranges_;
  const uint32_t n_;
};

// AddressMap::locate_range for work of `stream`.
inline Status locate_for(const Stream* stream, uint64_t address, uint64_t bytes, const char* function, const char* operand,
                         Located* out) {
  if (__builtin_expect(stream->kept != nullptr, 0) && stream->kept->find(address, bytes, out)) return FLHAL_OK;
  return AddressMap::locate_range(address, bytes, function, operand, out);
}

}  // namespace flhal
