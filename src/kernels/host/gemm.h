// src/kernels/host/gemm.h: a packed matrix product of one tile: the heart of matmul and convolution.
//
// Idea (Goto): a block of A is packed into panels of MR rows, one sliver of NR columns of B after the other is packed into
// the first-level cache, and a micro kernel keeps MR x NR sums in registers. Who packs and who stores is a parameter, so
// that strides, conversions and the implicit im2col of a convolution cost only where they are.
#pragma once

#include "kernels/host/rows.h"

LEVEL_BEGIN

// The register tile: NV vectors wide, MR rows high, chosen so that sums, one row of B and a broadcast fit.
template <class T> struct Tile {
#if defined(FLHAL_LEVEL_v4)
  static constexpr int MR = 12, NV = 2;
#elif defined(FLHAL_LEVEL_v3)
  static constexpr int MR = 6, NV = 2;
#else
  static constexpr int MR = 4, NV = 2;
#endif
  static constexpr int VL = FLHAL_VECTOR_BYTES / (int)sizeof(T), NR = NV * VL;
  static constexpr int64_t KC = 1024 / (int64_t)sizeof(T);        // depth of one packed block
  static constexpr int64_t MB = 192;                              // rows of a packed block of A; a multiple of every MR
};
template <> struct Tile<complex128> {
  static constexpr int MR = 2, NV = 2, VL = 1, NR = 2;
  static constexpr int64_t KC = 64, MB = 64;
};
template <class T> struct GemmVec { typedef typename VecOf<T>::type type; };
template <> struct GemmVec<complex128> { typedef complex128 type; };

template <class V, class T> FN V fused(V sum, T a, V b) { return sum + a * b; }   // this file is compiled with contraction
FN complex128 fused(complex128 sum, complex128 a, complex128 b) { return add(sum, mul(a, b)); }

// acc[MR][NR] = sum over k of a[k][MR] * b[k][NR].
template <class T> __attribute__((noinline)) void micro(T* acc, const T* a, const T* b, int64_t k) {
  constexpr int MR = Tile<T>::MR, NV = Tile<T>::NV, VL = Tile<T>::VL;
  typedef typename GemmVec<T>::type V;
  V sum[MR][NV];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) sum[m][v] = V{};
  for (; k > 0; --k, a += MR, b += NV * VL) {
    V row[NV];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) row[v] = *(const V*)(b + v * VL);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) sum[m][v] = fused(sum[m][v], a[m], row[v]);
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) *(V*)(acc + (m * NV + v) * VL) = sum[m][v];
}

// mb x nb outputs, depth K. pack_a(dst, k0, kc): all mb rows as panels [panel][k][MR]. pack_b(dst, n0, nr, k0, kc): columns
// n0 .. n0+nr-1 as [k][NR]. Both fill the missing rows and columns with zeros. store(acc, m0, mr, n0, nr, first_block):
// acc is [MR][NR]; called once per block of depth, so it must add when first_block is false.
template <class T, class PackA, class PackB, class Store>
FN void gemm_tile(int64_t mb, int64_t nb, int64_t K, PackA pack_a, PackB pack_b, Store store) {
  constexpr int MR = Tile<T>::MR, NR = Tile<T>::NR;
  constexpr int64_t KC = Tile<T>::KC;
  alignas(64) T a_panels[Tile<T>::MB * KC];
  alignas(64) T b_sliver[NR * KC];
  alignas(64) T acc[MR * NR];
  for (int64_t k0 = 0; k0 < K || k0 == 0; k0 += KC) {
    int64_t kc = min_of(KC, K - k0);
    pack_a(a_panels, k0, kc);
    for (int64_t n0 = 0; n0 < nb; n0 += NR) {
      int64_t nr = min_of(NR, nb - n0);
      pack_b(b_sliver, n0, nr, k0, kc);
      for (int64_t m0 = 0; m0 < mb; m0 += MR) {
        micro<T>(acc, a_panels + m0 * kc, b_sliver, kc);
        store(acc, m0, min_of(MR, mb - m0), n0, nr, k0 == 0);
      }
    }
  }
}

// Rows of a strided matrix as panels of MR. `from` is element (0, k0); strides in bytes.
template <class T> void pack_panels(T* dst, const char* from, Kind kind, int64_t rows, int64_t kc, int64_t row_stride, int64_t k_stride) {
  constexpr int MR = Tile<T>::MR;
  const Load load = load_table[kind][ComputeIndex<T>::value];
  const bool native = kind == kComputeKind[ComputeIndex<T>::value];
  T buffer[Tile<T>::KC];
  for (int64_t m0 = 0; m0 < rows; m0 += MR, dst += MR * kc) {
    int64_t mr = min_of(MR, rows - m0);
    const char* panel = from + m0 * row_stride;
    if (mr == MR && max_of(row_stride, -row_stride) < k_stride) {     // A is stored along m
      load(dst, panel, MR, row_stride, kc, k_stride);
      continue;
    }
    if (mr < MR) for (int64_t i = 0; i < MR * kc; ++i) dst[i] = T{};
    if (native && k_stride == (int64_t)sizeof(T) && mr == MR) {
      const T* r[MR];
      for (int m = 0; m < MR; ++m) r[m] = (const T*)(panel + m * row_stride);
      for (int64_t k = 0; k < kc; ++k)
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) dst[k * MR + m] = r[m][k];
      continue;
    }
    for (int64_t m = 0; m < mr; ++m) {
      load(buffer, panel + m * row_stride, kc, k_stride, 1, 0);
      for (int64_t k = 0; k < kc; ++k) dst[k * MR + m] = buffer[k];
    }
  }
}

// Columns of a strided matrix as one sliver [k][NR]. `from` is element (k0, n0).
template <class T> void pack_sliver(T* dst, const char* from, Kind kind, int64_t nr, int64_t kc, int64_t k_stride, int64_t n_stride) {
  constexpr int NR = Tile<T>::NR;
  const Load load = load_table[kind][ComputeIndex<T>::value];
  if (nr == NR && n_stride <= k_stride) { load(dst, from, NR, n_stride, kc, k_stride); return; }
  if (n_stride <= k_stride || kc == 1) {
    for (int64_t k = 0; k < kc; ++k) {
      load(dst + k * NR, from + k * k_stride, nr, n_stride, 1, 0);
      for (int64_t j = nr; j < NR; ++j) dst[k * NR + j] = T{};
    }
    return;
  }
  T buffer[4][Tile<T>::KC];                                           // B is stored along k: four columns at a time
  const bool native = kind == kComputeKind[ComputeIndex<T>::value] && k_stride == (int64_t)sizeof(T);
  for (int64_t j = 0; j < NR; j += 4 < NR ? 4 : NR) {
    const T* col[4];
    constexpr int step = 4 < NR ? 4 : NR;
    for (int c = 0; c < step; ++c) {
      if (j + c >= nr) {
        for (int64_t k = 0; k < kc; ++k) buffer[c][k] = T{};
        col[c] = buffer[c];
      } else if (native) {
        col[c] = (const T*)(from + (j + c) * n_stride);
      } else {
        load(buffer[c], from + (j + c) * n_stride, kc, k_stride, 1, 0);
        col[c] = buffer[c];
      }
    }
    for (int64_t k = 0; k < kc; ++k)
#pragma GCC unroll 4
      for (int c = 0; c < step; ++c) dst[k * NR + j + c] = col[c][k];
  }
}

LEVEL_END
