// src/kernels/plan_softmax.cc: softmax, log_softmax and their backwards.
#include <new>

#include "kernels/families.h"
#include "kernels/rows_geometry.h"

namespace flhal::kernels {
namespace {

struct SoftmaxPlan final : KernelPlan {
  uint32_t n_operands = 2, dim_key = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) RowsParams;
    const Tensor* operands[3];
    for (uint32_t k = 0; k < n_operands; ++k) operands[k] = &tensor_of(call, k);
    RowsRule rule;
    rule.inner_mask = 1u << attr_dim(call, dim_key, -1, operands[1]->rank);
    rows_geometry(*operands[1], operands, n_operands, rule, *p);
    out.groups[0] = rows_groups(*p, 4096);
    add_value(out, rows_bytes(*p));
    add_memory(out, call, 0);
    for (uint32_t k = 1; k < n_operands; ++k) add_operand(out, call, k);
  }
};

}  // namespace

PlanPtr plan_softmax(const Call& proto, const char** reason) {
  const bool backward = proto.op == FLHAL_OP_SOFTMAX_BACKWARD || proto.op == FLHAL_OP_LOG_SOFTMAX_BACKWARD;
  for (uint32_t i = 0; i < (backward ? 3u : 2u); ++i) {
    Kind kind = kind_of(tensor_of(proto, i).dtype);
    if (kind != kF32 && kind != kF64 && kind != kF16 && kind != kBF16) {
      *reason = "softmax exists for floating point only";
      return nullptr;
    }
  }
  const Tensor& x = tensor_of(proto, 1);
  if (x.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  Kind kind = proto.compute_dtype != 0 ? kind_of(proto.compute_dtype) : kind_of(x.dtype);
  bool is_double = kind == kF64;
  auto plan = std::make_unique<SoftmaxPlan>();
  plan->n_operands = backward ? 3 : 2;
  Named which;
  switch (proto.op) {
    case FLHAL_OP_SOFTMAX:
      which = is_double ? kNamed_softmax_f64 : kNamed_softmax_f32;
      plan->dim_key = FLHAL_ATTR_SOFTMAX_DIM;
      break;
    case FLHAL_OP_LOG_SOFTMAX:
      which = is_double ? kNamed_log_softmax_f64 : kNamed_log_softmax_f32;
      plan->dim_key = FLHAL_ATTR_LOG_SOFTMAX_DIM;
      break;
    case FLHAL_OP_SOFTMAX_BACKWARD:
      which = is_double ? kNamed_softmax_backward_f64 : kNamed_softmax_backward_f32;
      plan->dim_key = FLHAL_ATTR_SOFTMAX_BACKWARD_DIM;
      break;
    default:
      which = is_double ? kNamed_log_softmax_backward_f64 : kNamed_log_softmax_backward_f32;
      plan->dim_key = FLHAL_ATTR_LOG_SOFTMAX_BACKWARD_DIM;
      break;
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
