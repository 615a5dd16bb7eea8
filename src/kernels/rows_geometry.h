// src/kernels/rows_geometry.h: from the sizes and strides of a call to rows: outer dimensions number them, inner ones make
// their elements.
#pragma once

#include "kernels/call_reader.h"

namespace flhal::kernels {

struct RowsRule {
  uint32_t inner_mask = 0;       // bit d: dimension d of `shape` belongs to the row
  uint32_t lead = 0;             // the operand whose strides decide the order of walking
  bool keep_inner_order = false; // elements of a row must come in logical order (argmax, cumsum)
};

// Fills the geometry of `p` for operands that broadcast against `shape`, right-aligned. A null operand is absent.
void rows_geometry(const Tensor& shape, const Tensor* const* operands, uint32_t n_operands, const RowsRule& rule, RowsParams& p);

inline uint32_t rows_bytes(const RowsParams& p) {
  return static_cast<uint32_t>(__builtin_offsetof(RowsParams, dims)) + (p.n_outer + p.n_inner) * static_cast<uint32_t>(sizeof(RowDim));
}

// Rows a group takes so that it has about `elements` elements, and the number of groups.
inline uint64_t rows_groups(RowsParams& p, uint64_t elements) {
  uint64_t length = p.length ? p.length : 1;
  p.rows_per_group = length >= elements ? 1 : elements / length;
  return p.n_rows <= p.rows_per_group ? 1 : (p.n_rows + p.rows_per_group - 1) / p.rows_per_group;
}

}  // namespace flhal::kernels
