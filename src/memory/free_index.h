// src/memory/free_index.h: free spans by size, found in constant time (two-level segregated fit).
//
// Idea: sizes in granules fall into 8 bins a doubling; two levels of bit maps tell which bins have something. Below 8
// granules a bin is exact. A request looks at a few spans of its own bin, then takes from the next bin with anything in it.
// Threads: none; the pool's lock guards it.
#pragma once

#include <cstdint>

#include "memory/address_map.h"

namespace flhal {

class FreeIndex {
 public:
  void insert(Span* span) {
    Bin bin = bin_of(span->bytes >> kGranuleShift);
    Span*& head = heads_[bin.level][bin.step];
    span->prev = nullptr;
    span->next = head;
    if (head) head->prev = span;
    head = span;
    span->index = this;
    levels_ |= 1ull << bin.level;
    steps_[bin.level] |= uint8_t(1u << bin.step);
  }

  void remove(Span* span) {
    Bin bin = bin_of(span->bytes >> kGranuleShift);
    if (span->prev) span->prev->next = span->next;
    else heads_[bin.level][bin.step] = span->next;
    if (span->next) span->next->prev = span->prev;
    if (heads_[bin.level][bin.step] == nullptr) {
      steps_[bin.level] &= uint8_t(~(1u << bin.step));
      if (steps_[bin.level] == 0) levels_ &= ~(1ull << bin.level);
    }
    span->prev = span->next = nullptr;
    span->index = nullptr;
  }

  // A span of at least `granules`, still listed; nullptr when there is none that can be found cheaply.
  Span* find(uint64_t granules) const {
    Bin bin = bin_of(granules);
    int looked = 0;
    for (Span* span = heads_[bin.level][bin.step]; span && looked < kLook; span = span->next, ++looked)
      if (span->bytes >> kGranuleShift >= granules) return span;
    // In every later bin each span fits.
    uint32_t later = steps_[bin.level] & ~((2u << bin.step) - 1u) & 0xffu;
    if (later) return heads_[bin.level][__builtin_ctz(later)];
    uint64_t levels = bin.level >= 63 ? 0 : levels_ & ~((2ull << bin.level) - 1);
    if (levels) {
      uint32_t level = uint32_t(__builtin_ctzll(levels));
      return heads_[level][__builtin_ctz(steps_[level])];
    }
    // The rest of its own bin, before the pool has to grow.
    for (Span* span = heads_[bin.level][bin.step]; span; span = span->next)
      if (span->bytes >> kGranuleShift >= granules) return span;
    return nullptr;
  }

  template <typename Visit>
  void each(Visit&& visit) const {       // `visit` may remove the span it is given
    for (uint32_t level = 0; level < kLevels; ++level)
      for (uint32_t step = 0; step < 8; ++step)
        for (Span *span = heads_[level][step], *next; span; span = next) {
          next = span->next;
          visit(span);
        }
  }

  bool listed_where_it_belongs(const Span* span) const {   // for BlockPool::check
    Bin bin = bin_of(span->bytes >> kGranuleShift);
    if (!(levels_ >> bin.level & 1) || !(steps_[bin.level] >> bin.step & 1)) return false;
    for (Span* s = heads_[bin.level][bin.step]; s; s = s->next)
      if (s == span) return true;
    return false;
  }
  bool empty() const { return levels_ == 0; }

 private:
  static constexpr uint32_t kLevels = 36;
  static constexpr int kLook = 8;
  struct Bin {
    uint32_t level, step;
  };
  static Bin bin_of(uint64_t granules) {
    if (granules < 8) return {0, uint32_t(granules)};
    uint32_t top = 63u - uint32_t(__builtin_clzll(granules));
    return {top - 2, uint32_t(granules >> (top - 3)) & 7u};
  }

  uint64_t levels_ = 0;
  uint8_t steps_[kLevels] = {};
  Span* heads_[kLevels][8] = {};
};

}  // namespace flhal
