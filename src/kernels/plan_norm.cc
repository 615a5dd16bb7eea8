// src/kernels/plan_norm.cc: layer_norm, batch_norm and their backwards.
#include <new>

#include "kernels/families.h"
#include "kernels/norm_flags.h"
#include "kernels/rows_geometry.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kGroupElements = 16384;

// Which call operand stands at which kernel operand, and the flag that says it is there.
struct Slot { uint32_t operand; uint32_t flag; };

struct LayerNormPlan final : KernelPlan {
  bool backward = false;
  uint32_t n_dims = 1;
  double eps = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    static constexpr Slot kForward[] = {{0, 0}, {1, kHasMean}, {2, kHasRstd}, {3, 0}, {4, kHasWeight}, {5, kHasBias}};
    static constexpr Slot kBackward[] = {{0, kHasGradInput}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, kHasWeight}, {1, kHasGradWeight},
                                         {2, kHasGradBias}};
    const Slot* slots = backward ? kBackward : kForward;
    const uint32_t n = backward ? 8 : 6, x_slot = backward ? 2 : 3;
    begin_args(out, 1);
    auto* p = new (out.values) RowsParams;
    const Tensor* operands[8];
    uint32_t flags = 0;
    for (uint32_t k = 0; k < n; ++k) {
      bool is_given = given(call, slots[k].operand);
      operands[k] = is_given ? &tensor_of(call, slots[k].operand) : nullptr;
      if (is_given) flags |= slots[k].flag;
    }
    const Tensor& x = *operands[x_slot];
    RowsRule rule;
    rule.lead = x_slot;
    for (uint32_t d = x.rank - n_dims; d < x.rank; ++d) rule.inner_mask |= 1u << d;
    rows_geometry(x, operands, n, rule, *p);
    p->flags = flags;
    p->f[0] = eps;
    uint64_t groups = rows_groups(*p, kGroupElements);
    if (backward) {
      if (!(flags & kHasGradInput)) groups = 0;
      p->i[0] = static_cast<int64_t>(groups);
      p->i[1] = 64;
      if (flags & (kHasGradWeight | kHasGradBias)) groups += (p->length + 63) / 64;
    }
    out.groups[0] = groups ? groups : 1;
    add_value(out, rows_bytes(*p));
    for (uint32_t k = 0; k < n; ++k) add_optional(out, call, slots[k].operand);
  }
};

struct BatchNormPlan final : KernelPlan {
  bool backward = false, training = false;
  double eps = 0, momentum = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    static constexpr Slot kForward[] = {{0, 0}, {3, 0}, {1, kHasMean}, {2, kHasRstd}, {4, kHasWeight}, {5, kHasBias},
                                        {6, kHasRunningMean}, {7, kHasRunningVar}};
    static constexpr Slot kTrain[] = {{0, kHasGradInput}, {1, kHasGradWeight}, {2, kHasGradBias}, {3, 0}, {4, 0}, {5, kHasWeight},
                                      {8, 0}, {9, 0}};
    static constexpr Slot kEval[] = {{0, kHasGradInput}, {1, kHasGradWeight}, {2, kHasGradBias}, {3, 0}, {4, 0}, {5, kHasWeight},
                                     {6, 0}, {7, 0}};
    const Slot* slots = !backward ? kForward : training ? kTrain : kEval;
    begin_args(out, 1);
    auto* p = new (out.values) RowsParams;
    const Tensor& x = tensor_of(call, backward ? 4 : 3);
    // Per-channel operands are of rank 1; here they get the rank of x.
    Tensor per_channel[8];
    int64_t sizes[kMaxRank], strides[8][kMaxRank];
    for (uint32_t d = 0; d < x.rank; ++d) sizes[d] = d == 1 ? x.sizes[1] : 1;
    const Tensor* operands[8];
    uint32_t flags = training ? kTraining : 0;
    for (uint32_t k = 0; k < 8; ++k) {
      operands[k] = nullptr;
      if (!given(call, slots[k].operand)) continue;
      flags |= slots[k].flag;
      const Tensor& t = tensor_of(call, slots[k].operand);
      operands[k] = &t;
      if (t.rank == x.rank) continue;
      per_channel[k] = t;
      per_channel[k].rank = x.rank;
      per_channel[k].sizes = sizes;
      per_channel[k].strides = strides[k];
      for (uint32_t d = 0; d < x.rank; ++d) strides[k][d] = d == 1 ? t.strides[0] : 0;
      operands[k] = &per_channel[k];
    }
    RowsRule rule;
    rule.lead = backward ? 4 : 1;
    rule.inner_mask = ((1u << x.rank) - 1) & ~2u;
    rows_geometry(x, operands, 8, rule, *p);
    p->flags = flags;
    p->f[0] = eps;
    p->f[1] = momentum;
    out.groups[0] = rows_groups(*p, kGroupElements);
    add_value(out, rows_bytes(*p));
    for (uint32_t k = 0; k < 8; ++k) add_optional(out, call, slots[k].operand);
  }
};

bool is_float(Kind kind) { return kind == kF32 || kind == kF64 || kind == kF16 || kind == kBF16; }

}  // namespace

PlanPtr plan_norm(const Call& proto, const char** reason) {
  for (uint32_t i = 0; i < tensor_count(proto); ++i)
    if (given(proto, i) && !is_float(kind_of(tensor_of(proto, i).dtype))) {
      *reason = "normalisations exist for floating point only";
      return nullptr;
    }
  const bool backward = proto.op == FLHAL_OP_LAYER_NORM_BACKWARD || proto.op == FLHAL_OP_BATCH_NORM_BACKWARD;
  const Tensor& x = tensor_of(proto, backward ? 4 : 3);
  if (x.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  Kind kind = proto.compute_dtype != 0 ? kind_of(proto.compute_dtype) : kind_of(x.dtype);
  const bool is_double = kind == kF64;
  std::unique_ptr<KernelPlan> plan;
  Named which;
  if (proto.op == FLHAL_OP_LAYER_NORM || proto.op == FLHAL_OP_LAYER_NORM_BACKWARD) {
    auto made = std::make_unique<LayerNormPlan>();
    made->backward = backward;
    int64_t n = attr_int(proto, backward ? FLHAL_ATTR_LAYER_NORM_BACKWARD_N_DIMS : FLHAL_ATTR_LAYER_NORM_N_DIMS, 1);
    if (n < 1 || n > x.rank) { *reason = "layer_norm: n_dims must lie between 1 and the rank"; return nullptr; }
    made->n_dims = static_cast<uint32_t>(n);
    made->eps = attr_float(proto, FLHAL_ATTR_LAYER_NORM_EPS, 1e-5);
    which = backward ? (is_double ? kNamed_layer_norm_backward_f64 : kNamed_layer_norm_backward_f32)
                     : (is_double ? kNamed_layer_norm_f64 : kNamed_layer_norm_f32);
    plan = std::move(made);
  } else {
    auto made = std::make_unique<BatchNormPlan>();
    made->backward = backward;
    made->training = attr_int(proto, backward ? FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING : FLHAL_ATTR_BATCH_NORM_TRAINING, 0) != 0;
    made->eps = attr_float(proto, backward ? FLHAL_ATTR_BATCH_NORM_BACKWARD_EPS : FLHAL_ATTR_BATCH_NORM_EPS, 1e-5);
    made->momentum = attr_float(proto, FLHAL_ATTR_BATCH_NORM_MOMENTUM, 0.1);
    if (x.rank < 2) { *reason = "batch_norm needs rank 2 or more"; return nullptr; }
    uint32_t mean = backward ? (made->training ? 8 : 6) : 6, var = mean + 1;
    if ((backward || !made->training) && !(given(proto, mean) && given(proto, var))) {
      *reason = "batch_norm: the statistics it needs are not given";
      return nullptr;
    }
    which = backward ? (is_double ? kNamed_batch_norm_backward_f64 : kNamed_batch_norm_backward_f32)
                     : (is_double ? kNamed_batch_norm_f64 : kNamed_batch_norm_f32);
    plan = std::move(made);
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
