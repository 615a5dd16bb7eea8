// src/kernels/plan_reduce.cc: reductions. Which dimensions are reduced follows from the output's sizes of 1.
#include <new>

#include "kernels/families.h"
#include "kernels/rows_geometry.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kGroupElements = 32768;
constexpr uint64_t kTileMin = 16;   // fewer neighbouring outputs than this are not worth a vector

struct ReducePlan final : KernelPlan {
  bool may_be_columns = false, keep_order = false;
  double correction = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) RowsParams;
    const Tensor& y = tensor_of(call, 0);
    const Tensor& x = tensor_of(call, 1);
    const Tensor* operands[2] = {&y, &x};
    RowsRule rule;
    rule.lead = 1;
    rule.keep_inner_order = keep_order;
    for (uint32_t d = 0; d < x.rank; ++d)
      if (d >= y.rank || (y.sizes[d] == 1 && x.sizes[d] != 1)) rule.inner_mask |= 1u << d;
    rows_geometry(x, operands, 2, rule, *p);
    p->f[0] = correction;
    // Where neighbouring outputs are nearer than neighbouring terms, the vector runs over outputs.
    const RowDim* inner = p->dims + p->n_outer;
    p->columns = may_be_columns && p->n_outer > 0 && p->length > 1 && p->dims[0].stride[1] != 0 &&
                 (p->dims[0].stride[1] < inner[0].stride[1] || inner[0].stride[1] == 0) &&
                 static_cast<uint64_t>(p->dims[0].size) >= (inner[0].stride[1] == 0 ? 1 : kTileMin);
    out.groups[0] = rows_groups(*p, kGroupElements);
    if (p->columns && p->rows_per_group < 256) {   // a group is at least one vector tile wide
      p->rows_per_group = 256;
      out.groups[0] = (p->n_rows + 255) / 256;
      if (out.groups[0] == 0) out.groups[0] = 1;
    }
    add_value(out, rows_bytes(*p));
    add_memory(out, call, 0);
    add_operand(out, call, 1);
  }
};

// Columns: f32, f64, i64, c128, bool. In bools a sum is "any" and a product "all": 0.5 is true there, and 0 as an integer.
struct Row { uint32_t op; int32_t kernel[5]; };
constexpr int32_t kNone = -1;
constexpr Row kRows[] = {
    {FLHAL_OP_SUM, {kNamed_sum_f32, kNamed_sum_f64, kNamed_sum_i64, kNamed_sum_c128, kNamed_any_bool}},
    {FLHAL_OP_MEAN, {kNamed_mean_f32, kNamed_mean_f64, kNone, kNamed_mean_c128, kNone}},
    {FLHAL_OP_PROD, {kNamed_prod_f32, kNamed_prod_f64, kNamed_prod_i64, kNone, kNamed_all_bool}},
    {FLHAL_OP_AMAX, {kNamed_amax_f32, kNamed_amax_f64, kNamed_amax_i64, kNone, kNamed_any_bool}},
    {FLHAL_OP_AMIN, {kNamed_amin_f32, kNamed_amin_f64, kNamed_amin_i64, kNone, kNamed_all_bool}},
    {FLHAL_OP_NORM2, {kNamed_norm2_f32, kNamed_norm2_f64, kNone, kNone, kNone}},
    {FLHAL_OP_ANY, {kNone, kNone, kNone, kNone, kNamed_any_bool}},
    {FLHAL_OP_ALL, {kNone, kNone, kNone, kNone, kNamed_all_bool}},
    {FLHAL_OP_ARGMAX, {kNamed_argmax_f32, kNamed_argmax_f64, kNamed_argmax_i64, kNone, kNone}},
    {FLHAL_OP_ARGMIN, {kNamed_argmin_f32, kNamed_argmin_f64, kNamed_argmin_i64, kNone, kNone}},
    {FLHAL_OP_VAR, {kNamed_var_f32, kNamed_var_f64, kNone, kNone, kNone}},
};

}  // namespace

PlanPtr plan_reduce(const Call& proto, const char** reason) {
  const Tensor& out = tensor_of(proto, 0);
  const Tensor& in = tensor_of(proto, 1);
  Kind from = kind_of(in.dtype), to = kind_of(out.dtype);
  if (from == kKinds || to == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
  if (in.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  const bool arg = proto.op == FLHAL_OP_ARGMAX || proto.op == FLHAL_OP_ARGMIN;
  Kind kind = proto.compute_dtype != 0 && !arg ? kind_of(proto.compute_dtype) : from;
  if (kind == kKinds) { *reason = "the portable kernels do not compute in this dtype"; return nullptr; }
  const bool truth = proto.op == FLHAL_OP_ANY || proto.op == FLHAL_OP_ALL ||
                     (kind == kBool && to == kBool && !arg && proto.op != FLHAL_OP_MEAN);
  if (proto.op == FLHAL_OP_MEAN && compute_of(kind) != kCF32 && compute_of(kind) != kCF64 && compute_of(kind) != kCC128) kind = to;
  Compute compute = compute_of(kind);
  if (!truth && compute_of(from) == kCC128 && compute != kCC128) {
    *reason = "a complex input of a reduction that computes in real numbers";   // reading it so would drop the imaginary parts
    return nullptr;
  }
  if ((from == kU64) && (arg || proto.op == FLHAL_OP_AMAX || proto.op == FLHAL_OP_AMIN)) {
    *reason = "uint64 is computed as int64 here, and this operator depends on the sign";
    return nullptr;
  }
  int column = truth ? 4 : compute == kCF32 ? 0 : compute == kCF64 ? 1 : compute == kCC128 ? 3 : 2;
  for (const Row& row : kRows) {
    if (row.op != proto.op) continue;
    if (row.kernel[column] == kNone) break;
    auto plan = std::make_unique<ReducePlan>();
    plan->host = level().named[row.kernel[column]];
    plan->function = function_name(plan->host);
    plan->keep_order = arg;
    plan->may_be_columns = !arg && proto.op != FLHAL_OP_VAR;
    plan->correction = attr_float(proto, FLHAL_ATTR_VAR_CORRECTION, 1.0);
    return plan;
  }
  *reason = "the reduction does not exist for this compute dtype";
  return nullptr;
}

}  // namespace flhal::kernels
