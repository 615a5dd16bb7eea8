// src/dispatch/composite/table.cc: which op has which composite. No cycles: a part's own composite never names the op.
#include <flhal/ops.h>

#include "dispatch/composite/composites.h"

namespace flhal {

CompositeFn composite_for(uint32_t op) {
  struct Row {
    uint32_t op;
    CompositeFn fn;
  };
  static constexpr Row kRows[] = {
      {FLHAL_OP_SOFTMAX, composite::softmax},
      {FLHAL_OP_LOG_SOFTMAX, composite::log_softmax},
      {FLHAL_OP_SOFTMAX_BACKWARD, composite::softmax_backward},
      {FLHAL_OP_LOG_SOFTMAX_BACKWARD, composite::log_softmax_backward},
      {FLHAL_OP_LAYER_NORM, composite::layer_norm},
      {FLHAL_OP_SQUARE, composite::square},
      {FLHAL_OP_RECIPROCAL, composite::reciprocal},
      {FLHAL_OP_RSQRT, composite::rsqrt},
      {FLHAL_OP_SILU, composite::silu},
      {FLHAL_OP_RELU, composite::relu},
      {FLHAL_OP_ADDCMUL, composite::addcmul},
      {FLHAL_OP_ADDCDIV, composite::addcdiv},
      {FLHAL_OP_LERP, composite::lerp},
      {FLHAL_OP_CLAMP, composite::clamp},
      {FLHAL_OP_MASKED_FILL, composite::masked_fill},
      {FLHAL_OP_MEAN, composite::mean},
      {FLHAL_OP_NORM2, composite::norm2},
      {FLHAL_OP_VAR, composite::var},
      {FLHAL_OP_CAT, composite::cat},
  };
  for (const Row& row : kRows)
    if (row.op == op) return row.fn;
  return nullptr;
}

}  // namespace flhal
