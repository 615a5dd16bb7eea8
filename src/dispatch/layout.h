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

// Row-major without gaps, and not empty? Then `*elements` is their number. Sizes of 1 have no say. False also for what is
// malformed.
[[gnu::always_inline]] inline bool dense_view(const int64_t* sizes, const int64_t* strides, uint32_t rank,
                                              uint64_t* elements) {
  int64_t expected = 1, signs = 0;
  bool dense = true;
  auto step = [&](uint32_t d) __attribute__((always_inline)) {
    int64_t size = sizes[d];
    if (size == 1) return true;
    signs |= size;
    return strides[d] == expected && !__builtin_mul_overflow(expected, size, &expected);
  };
  if (rank == 4) {
    dense = step(3) && step(2) && step(1) && step(0);
  } else {
    for (uint32_t d = rank; dense && d-- > 0;) dense = step(d);
  }
  *elements = static_cast<uint64_t>(expected);
  return dense && signs >= 0 && *elements - 1 < kMaxElements - 1;
}

typedef int64_t Pair __attribute__((vector_size(16), aligned(8), may_alias));
inline Pair pair_at(const int64_t* p, uint32_t d) { return *reinterpret_cast<const Pair*>(p + d); }
inline bool any_bit(Pair p) { return (p[0] | p[1]) != 0; }

// Where two views of one rank differ: no bit set when they do not. Two dimensions at a time, the usual ranks without a
// loop: half the instructions of the plain one.
[[gnu::always_inline]] inline Pair view_difference(const int64_t* sizes_a, const int64_t* strides_a,
                                                   const int64_t* sizes_b, const int64_t* strides_b, uint32_t rank) {
  auto differ = [&](uint32_t d) __attribute__((always_inline)) {
    return (pair_at(sizes_a, d) ^ pair_at(sizes_b, d)) | (pair_at(strides_a, d) ^ pair_at(strides_b, d));
  };
  if (rank == 4) return differ(0) | differ(2);
  if (rank == 1) return Pair{(sizes_a[0] ^ sizes_b[0]) | (strides_a[0] ^ strides_b[0]), 0};
  Pair different = {0, 0};
  if (rank & 1) different[0] = (sizes_a[rank - 1] ^ sizes_b[rank - 1]) | (strides_a[rank - 1] ^ strides_b[rank - 1]);
  for (uint32_t d = 0; d + 2 <= rank; d += 2) different |= differ(d);
  return different;
}
inline bool same_view(const int64_t* sizes_a, const int64_t* strides_a, const int64_t* sizes_b,
                      const int64_t* strides_b, uint32_t rank) {
  return !any_bit(view_difference(sizes_a, strides_a, sizes_b, strides_b, rank));
}

// What dense_view has refused: any other sizes and strides. `may_be_permuted`: kPermuted is looked for, which sorts. False:
// malformed (negative size or stride, too large); `what` says which.
bool classify_slowly(const flhal_tensor& t, bool may_be_permuted, View* view, const char** what);

// Two elements of the view share bytes. Exact for views below 2^22 elements; above, a view that cannot be proven free of
// overlap counts as overlapping.
bool overlaps_itself(const flhal_tensor& t);
// The byte ranges overlap; do elements? False only when proven.
bool may_share_elements(const flhal_tensor& a, const flhal_tensor& b);

}  // namespace flhal
