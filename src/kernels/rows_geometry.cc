// src/kernels/rows_geometry.cc: sorting and merging the dimensions of row kernels.
#include "kernels/rows_geometry.h"

namespace flhal::kernels {
namespace {

struct List {
  RowDim dims[kMaxRank];
  uint32_t n = 0;

  // Innermost first. Sorted by the lead's stride where that is allowed.
  void insert(const RowDim& dim, uint32_t lead, bool sorts) {
    uint32_t place = n++;
    if (sorts && dim.stride[lead] != 0)
      for (; place > 0 && dims[place - 1].stride[lead] > dim.stride[lead]; --place) dims[place] = dims[place - 1];
    dims[place] = dim;
  }
  void merge(uint32_t n_operands) {
    uint32_t m = 0;
    for (uint32_t d = 0; d < n; ++d) {
      bool merges = m > 0;
      for (uint32_t k = 0; merges && k < n_operands; ++k) merges = dims[d].stride[k] == dims[m - 1].stride[k] * dims[m - 1].size;
      if (merges) dims[m - 1].size *= dims[d].size;
      else dims[m++] = dims[d];
    }
    n = m;
  }
};

}  // namespace

void rows_geometry(const Tensor& shape, const Tensor* const* operands, uint32_t n_operands, const RowsRule& rule, RowsParams& p) {
  List outer, inner;
  p.n_rows = p.length = 1;
  p.n_operands = n_operands;
  p.columns = 0;
  p.flags = 0;
  p.error = nullptr;
  for (uint32_t k = 0; k < n_operands; ++k) p.kind[k] = operands[k] ? kind_of(operands[k]->dtype) : kF32;
  for (uint32_t d = shape.rank; d-- > 0;) {
    bool in_row = rule.inner_mask >> d & 1;
    (in_row ? p.length : p.n_rows) *= static_cast<uint64_t>(shape.sizes[d]);
    if (shape.sizes[d] == 1) continue;
    RowDim dim{};
    dim.size = shape.sizes[d];
    for (uint32_t k = 0; k < n_operands; ++k) {
      const Tensor* t = operands[k];
      int32_t own = t ? static_cast<int32_t>(d) - static_cast<int32_t>(shape.rank) + static_cast<int32_t>(t->rank) : -1;
      dim.stride[k] = own < 0 || t->sizes[own] == 1 ? 0 : t->strides[own] * kKindBytes[p.kind[k]];
    }
    if (in_row) inner.insert(dim, rule.lead, !rule.keep_inner_order);
    else outer.insert(dim, rule.lead, true);
  }
  outer.merge(n_operands);
  inner.merge(n_operands);
  if (inner.n == 0) {
    inner.n = 1;
    inner.dims[0].size = 1;
    for (uint32_t k = 0; k < kMaxRowOperands; ++k) inner.dims[0].stride[k] = k < n_operands ? kKindBytes[p.kind[k]] : 0;
  }
  p.n_outer = outer.n;
  p.n_inner = inner.n;
  for (uint32_t d = 0; d < outer.n; ++d) p.dims[d] = outer.dims[d];
  for (uint32_t d = 0; d < inner.n; ++d) p.dims[outer.n + d] = inner.dims[d];
  p.dense = 0;
  if (inner.n == 1)
    for (uint32_t k = 0; k < n_operands; ++k)
      if (inner.dims[0].stride[k] == kKindBytes[p.kind[k]]) p.dense |= static_cast<uint8_t>(1u << k);
}

}  // namespace flhal::kernels
