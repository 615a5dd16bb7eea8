// src/dispatch/layout.h: how one operand lies in memory: its class, its reach, whether it overlaps itself or another.
#pragma once

#include "dispatch/prepared_call.h"

namespace flhal {

struct View {
  Layout layout = Layout::kAbsent;
  uint64_t span = 0;               // elements from the first to the last, both included; 0 when empty
  uint64_t elements = 0;
};

inline constexpr uint64_t kMaxElements = 1ull << 56;   // above, byte counts could leave 64 bits: refused

// Row-major without gaps? Then `*elements` is their number. Sizes of 1 have no say. False also for what is malformed.
inline bool dense_view(const int64_t* sizes, const int64_t* strides, uint32_t rank, uint64_t* elements) {
  int64_t expected = 1;
  for (uint32_t d = rank; d-- > 0;) {
    int64_t size = sizes[d];
    if (size == 1) continue;
    if (strides[d] != expected || size <= 0) return false;
    if (__builtin_mul_overflow(expected, size, &expected)) return false;
  }
  *elements = static_cast<uint64_t>(expected);
  return *elements < kMaxElements;
}

inline bool same_view(const int64_t* sizes_a, const int64_t* strides_a, const int64_t* sizes_b,
                      const int64_t* strides_b, uint32_t rank) {
  // Two dimensions at a time, the usual ranks without a loop: half the instructions of the plain one.
  typedef int64_t Pair __attribute__((vector_size(16), aligned(8), may_alias));
  auto differ = [&](uint32_t d) {
    auto at = [d](const int64_t* p) { return *reinterpret_cast<const Pair*>(p + d); };
    return (at(sizes_a) ^ at(sizes_b)) | (at(strides_a) ^ at(strides_b));
  };
  int64_t rest = 0;
  if (rank & 1) rest = (sizes_a[rank - 1] ^ sizes_b[rank - 1]) | (strides_a[rank - 1] ^ strides_b[rank - 1]);
  if (rank < 2) return rest == 0;
  Pair different = differ(0);
  if (rank >= 4) {
    different |= differ(2);
    for (uint32_t d = 4; d + 2 <= rank; d += 2) different |= differ(d);
  }
  return (different[0] | different[1] | rest) == 0;
}

// The general case: any sizes and strides. False: malformed (negative size or stride, too large); `what` says which.
bool classify_slowly(const flhal_tensor& t, View* view, const char** what);

// Two elements of the view share bytes. Exact for views below 2^22 elements; above, a view that cannot be proven free of
// overlap counts as overlapping.
bool overlaps_itself(const flhal_tensor& t);
// The byte ranges overlap; do elements? False only when proven.
bool may_share_elements(const flhal_tensor& a, const flhal_tensor& b);

}  // namespace flhal
