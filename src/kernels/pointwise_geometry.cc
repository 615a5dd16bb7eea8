// src/kernels/pointwise_geometry.cc: broadcasting, sorting and merging dimensions of pointwise calls.
#include "kernels/pointwise_geometry.h"

namespace flhal::kernels {

namespace {

bool same_shape_contiguous(const Tensor& a, const Tensor& out) {
  if (a.rank != out.rank) return false;
  int64_t expected = 1;
  for (uint32_t d = out.rank; d-- > 0;) {
    if (a.sizes[d] != out.sizes[d] || (a.strides[d] != expected && a.sizes[d] != 1)) return false;
    expected *= a.sizes[d];
  }
  return true;
}

// Should dimension `a` be walked inside of `b`? By the output's strides first: its writes are the dearest.
bool inside(const PointwiseDim& a, const PointwiseDim& b, uint32_t n_operands) {
  for (uint32_t k = 0; k < n_operands; ++k) {
    if (a.stride[k] == 0 || b.stride[k] == 0) continue;
    if (a.stride[k] != b.stride[k]) return a.stride[k] < b.stride[k];
  }
  return false;
}

}  // namespace

void pointwise_geometry(const Tensor* const* operands, uint32_t n_operands, const Kind* native, PointwiseParams& p) {
  const Tensor& out = *operands[0];
  p.n_operands = n_operands;
  p.n = element_count(out);
  p.linear = 0;
  p.scalar = 0;
  bool all_native = true, dense = true;
  for (uint32_t k = 0; k < n_operands; ++k) {
    const Tensor& t = *operands[k];
    p.kind[k] = kind_of(t.dtype);
    if (t.rank == 0 && k > 0) {
      p.scalar |= static_cast<uint8_t>(1u << k);
      continue;
    }
    all_native &= p.kind[k] == native[k];
    dense = dense && same_shape_contiguous(t, out);
  }
  if (dense) {
    p.n_dims = 1;
    p.dims[0].size = static_cast<int64_t>(p.n);
    for (uint32_t k = 0; k < n_operands; ++k) p.dims[0].stride[k] = (p.scalar >> k & 1) ? 0 : kKindBytes[p.kind[k]];
    p.linear = static_cast<uint8_t>(~p.scalar);
    p.direct = all_native;
    return;
  }

  PointwiseDim dims[kMaxRank];
  uint32_t n = 0;
  for (uint32_t d = out.rank; d-- > 0;) {      // innermost first
    if (out.sizes[d] == 1) continue;
    PointwiseDim& dim = dims[n];
    dim.size = out.sizes[d];
    for (uint32_t k = 0; k < n_operands; ++k) {
      const Tensor& t = *operands[k];
      int32_t own = static_cast<int32_t>(d) - static_cast<int32_t>(out.rank) + static_cast<int32_t>(t.rank);
      dim.stride[k] = own < 0 || t.sizes[own] == 1 ? 0 : t.strides[own] * kKindBytes[p.kind[k]];
    }
    uint32_t place = n++;                      // insertion sort: nearly always in order already
    for (PointwiseDim moved = dim; place > 0 && inside(moved, dims[place - 1], n_operands); --place) {
      dims[place] = dims[place - 1];
      dims[place - 1] = moved;
    }
  }
  uint32_t m = 0;
  for (uint32_t d = 0; d < n; ++d) {           // merge neighbours that are one run in every operand
    bool merges = m > 0;
    for (uint32_t k = 0; merges && k < n_operands; ++k)
      merges = dims[d].stride[k] == p.dims[m - 1].stride[k] * p.dims[m - 1].size;
    if (merges) p.dims[m - 1].size *= dims[d].size;
    else p.dims[m++] = dims[d];
  }
  if (m == 0) {                                // one element
    p.dims[0].size = 1;
    for (uint32_t k = 0; k < n_operands; ++k) p.dims[0].stride[k] = kKindBytes[p.kind[k]];
    m = 1;
  }
  p.n_dims = m;
  all_native = true;
  for (uint32_t k = 0; k < n_operands; ++k) {
    int64_t expected = kKindBytes[p.kind[k]];
    bool linear = true, scalar = k > 0;
    for (uint32_t d = 0; d < m; ++d) {
      linear &= p.dims[d].stride[k] == expected;
      scalar &= p.dims[d].stride[k] == 0;
      expected *= p.dims[d].size;
    }
    if (scalar) p.scalar |= static_cast<uint8_t>(1u << k);
    if (linear) p.linear |= static_cast<uint8_t>(1u << k);
    all_native &= scalar || (linear && p.kind[k] == native[k]);
  }
  p.direct = m == 1 && all_native;
}

}  // namespace flhal::kernels
