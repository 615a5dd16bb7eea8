// src/kernels/pointwise_geometry.h: from the sizes and strides of a call to the few dimensions a pointwise kernel walks.
#pragma once

#include "kernels/call_reader.h"

namespace flhal::kernels {

// Fills n, n_dims, dims, direct, linear, scalar and kind of `p` for `operands` (operand 0 is the output, which gives the
// sizes; the others broadcast against it). `native[k]` is the kind the kernel reads without converting.
// Costs about 15 ns for three dense operands of rank 4, 60 ns where strides have to be sorted and merged.
void pointwise_geometry(const Tensor* const* operands, uint32_t n_operands, const Kind* native, PointwiseParams& p);

inline uint32_t pointwise_bytes(const PointwiseParams& p) {
  return static_cast<uint32_t>(__builtin_offsetof(PointwiseParams, dims)) + p.n_dims * static_cast<uint32_t>(sizeof(PointwiseDim));
}

}  // namespace flhal::kernels
