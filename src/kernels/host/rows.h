// src/kernels/host/rows.h: reading and writing rows of any layout and kind as dense runs of a compute type.
#pragma once

#include "kernels/host/convert.h"
#include "kernels/host/level.h"

LEVEL_BEGIN
#include "kernels/prelude/host.h"

#ifndef FLHAL_COMPUTE_OF
#define FLHAL_COMPUTE_OF
template <class T> struct ComputeIndex;
template <> struct ComputeIndex<float> { static constexpr Compute value = kCF32; };
template <> struct ComputeIndex<double> { static constexpr Compute value = kCF64; };
template <> struct ComputeIndex<int64_t> { static constexpr Compute value = kCI64; };
template <> struct ComputeIndex<int32_t> { static constexpr Compute value = kCI32; };
template <> struct ComputeIndex<bool8> { static constexpr Compute value = kCBool; };
template <> struct ComputeIndex<complex128> { static constexpr Compute value = kCC128; };
#endif

FN int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

// Elements of one block: what a buffer of 4 KiB holds.
template <class T> constexpr int64_t block_elements() { return 4096 / (int64_t)sizeof(T); }

// Which row: byte offset of its first element in operand k.
FN int64_t row_offset(const RowsParams* p, uint64_t row, uint32_t k) {
  int64_t o = 0;
  for (uint32_t d = 0; d < p->n_outer; ++d) {
    if (d + 1 == p->n_outer) { o += (int64_t)row * p->dims[d].stride[k]; break; }
    o += (int64_t)(row % (uint64_t)p->dims[d].size) * p->dims[d].stride[k];
    row /= (uint64_t)p->dims[d].size;
  }
  return o;
}

// Elements [first, first + n) of a row of operand k to or from a dense buffer of elements of `bytes` bytes. Not inlined:
// these are the slow paths of many kernels.
void gather_row(const RowsParams* p, uint32_t k, Load load, const char* row, int64_t first, int64_t n, void* buffer, int64_t bytes);
void scatter_row(const RowsParams* p, uint32_t k, Store store, char* row, int64_t first, int64_t n, const void* buffer, int64_t bytes);

template <class T> struct Reader {
  const RowsParams* p;
  uint32_t k;
  bool direct;
  Load load;
  Reader(const RowsParams* params, uint32_t operand) : p(params), k(operand) {
    direct = (p->dense >> k & 1) && p->kind[k] == kComputeKind[ComputeIndex<T>::value];
    load = load_table[p->kind[k]][ComputeIndex<T>::value];
  }
  // Elements [first, first + n) of the row at `row`; n is at most block_elements unless direct.
  FN_MEMBER const T* get(const char* row, int64_t first, int64_t n, T* buffer) const {
    if (direct) return (const T*)row + first;
    gather_row(p, k, load, row, first, n, buffer, sizeof(T));
    return buffer;
  }
};
template <class T> struct Writer {
  const RowsParams* p;
  uint32_t k;
  bool direct;
  Store store;
  Writer(const RowsParams* params, uint32_t operand) : p(params), k(operand) {
    direct = (p->dense >> k & 1) && p->kind[k] == kComputeKind[ComputeIndex<T>::value];
    store = store_table[p->kind[k]][ComputeIndex<T>::value];
  }
  FN_MEMBER T* place(char* row, int64_t first, T* buffer) const { return direct ? (T*)row + first : buffer; }
  FN_MEMBER void put(char* row, int64_t first, int64_t n, const T* buffer) const {
    if (!direct) scatter_row(p, k, store, row, first, n, buffer, sizeof(T));
  }
};
// One element of any kind.
template <class T> FN void put_one(char* to, Kind kind, T value) {
  store_table[kind][ComputeIndex<T>::value](to, &value, 1, 0, 1, 0);
}
template <class T> FN T get_one(const char* from, Kind kind) {
  T value;
  load_table[kind][ComputeIndex<T>::value](&value, from, 1, 0, 1, 0);
  return value;
}

LEVEL_END
