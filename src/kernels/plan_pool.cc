// src/kernels/plan_pool.cc: plans of pooling.
#include <new>

#include "kernels/families.h"

namespace flhal::kernels {
namespace {

// Rank 4 (images, channels, h, w) or rank 3 (channels, h, w).
struct Plane { int64_t image, channel, at[2]; };
Plane plane_of(const Tensor& t) {
  const int64_t bytes = kKindBytes[kind_of(t.dtype)];
  const uint32_t d = t.rank - 3;
  return {t.rank == 4 ? t.strides[0] * bytes : 0, t.strides[d] * bytes, {t.strides[d + 1] * bytes, t.strides[d + 2] * bytes}};
}

struct PoolPlan final : KernelPlan {
  bool average = false, backward = false;
  PoolParams fixed{};

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) PoolParams(fixed);
    const bool has_index = !average && (backward || given(call, 1));
    const Tensor& x = tensor_of(call, backward ? 0 : average ? 1 : 2);
    const Tensor& y = tensor_of(call, backward ? 1 : 0);
    Plane xp = plane_of(x), yp = plane_of(y), ip{};
    p->images = x.rank == 4 ? x.sizes[0] : 1;
    p->channels = x.sizes[x.rank - 3];
    for (uint32_t i = 0; i < 2; ++i) {
      p->in[i] = x.sizes[x.rank - 2 + i];
      p->out[i] = y.sizes[y.rank - 2 + i];
      p->x_at[i] = xp.at[i];
      p->y_at[i] = yp.at[i];
    }
    p->x_image = xp.image;
    p->x_channel = xp.channel;
    p->y_image = yp.image;
    p->y_channel = yp.channel;
    p->x_kind = kind_of(x.dtype);
    p->y_kind = kind_of(y.dtype);
    p->i_kind = kI64;
    p->has_index = has_index;
    p->error = out.error;
    if (has_index) {
      const Tensor& index = tensor_of(call, backward ? 2 : 1);
      ip = plane_of(index);
      p->i_kind = kind_of(index.dtype);
    }
    p->i_image = ip.image;
    p->i_channel = ip.channel;
    p->i_at[0] = ip.at[0];
    p->i_at[1] = ip.at[1];
    uint64_t groups = static_cast<uint64_t>(p->images * p->channels);
    out.groups[0] = groups ? groups : 1;
    add_value(out, sizeof(PoolParams));
    add_memory(out, call, 0);
    if (average) {
      add_operand(out, call, 1);
    } else {
      add_optional(out, call, 1);
      add_operand(out, call, 2);
    }
  }
};

}  // namespace

PlanPtr plan_pool(const Call& proto, const char** reason) {
  auto plan = std::make_unique<PoolPlan>();
  plan->average = proto.op == FLHAL_OP_AVG_POOL2D;
  plan->backward = proto.op == FLHAL_OP_MAX_POOL2D_BACKWARD;
  const Tensor& x = tensor_of(proto, plan->backward ? 1 : plan->average ? 1 : 2);
  for (uint32_t i = 0; i < tensor_count(proto); ++i)
    if (given(proto, i)) {
      const Tensor& t = tensor_of(proto, i);
      if (t.rank != 3 && t.rank != 4) { *reason = "pooling needs operands of rank 3 or 4"; return nullptr; }
      if (kind_of(t.dtype) == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
    }
  Compute compute = compute_of(kind_of(x.dtype));
  if (compute == kCI32) compute = kCI64;
  if (compute == kCC128 || (compute == kCI64 && proto.op != FLHAL_OP_MAX_POOL2D)) {
    *reason = "this pooling exists for floating point only";
    return nullptr;
  }
  const bool max = proto.op == FLHAL_OP_MAX_POOL2D;
  if (!plan->backward) {
    const uint32_t kernel = max ? FLHAL_ATTR_MAX_POOL2D_KERNEL : FLHAL_ATTR_AVG_POOL2D_KERNEL;
    const uint32_t stride = max ? FLHAL_ATTR_MAX_POOL2D_STRIDE : FLHAL_ATTR_AVG_POOL2D_STRIDE;
    const uint32_t padding = max ? FLHAL_ATTR_MAX_POOL2D_PADDING : FLHAL_ATTR_AVG_POOL2D_PADDING;
    for (uint32_t i = 0; i < 2; ++i) {
      plan->fixed.kernel[i] = attr_ints(proto, kernel, i, 1);
      plan->fixed.stride[i] = attr_ints(proto, stride, i, plan->fixed.kernel[i]);
      plan->fixed.padding[i] = attr_ints(proto, padding, i, 0);
      plan->fixed.dilation[i] = max ? attr_ints(proto, FLHAL_ATTR_MAX_POOL2D_DILATION, i, 1) : 1;
      if (plan->fixed.kernel[i] < 1 || plan->fixed.stride[i] < 1 || plan->fixed.dilation[i] < 1) {
        *reason = "pooling needs kernels, strides and dilations of 1 or more";
        return nullptr;
      }
      if ((plan->fixed.kernel[i] - 1) * plan->fixed.dilation[i] + 1 > 512) { *reason = "a pooling window above 512 places"; return nullptr; }
    }
    plan->fixed.count_include_pad = attr_int(proto, FLHAL_ATTR_AVG_POOL2D_COUNT_INCLUDE_PAD, 1) != 0;
    plan->fixed.divisor = attr_int(proto, FLHAL_ATTR_AVG_POOL2D_DIVISOR, 0);
  }
  plan->can_fail = plan->backward;
  Named which;
  if (max) which = compute == kCF64 ? kNamed_max_pool2d_f64 : compute == kCF32 ? kNamed_max_pool2d_f32 : kNamed_max_pool2d_i64;
  else if (plan->average) which = compute == kCF64 ? kNamed_avg_pool2d_f64 : kNamed_avg_pool2d_f32;
  else which = compute == kCF64 ? kNamed_max_pool2d_backward_f64 : kNamed_max_pool2d_backward_f32;
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
