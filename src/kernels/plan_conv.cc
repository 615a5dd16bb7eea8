// src/kernels/plan_conv.cc: plans of conv2d and its gradients.
#include <algorithm>
#include <new>

#include "kernels/families.h"

namespace flhal::kernels {
namespace {

int64_t bytes(const Tensor& t, uint32_t d) { return t.strides[d] * kKindBytes[kind_of(t.dtype)]; }

enum class Which { kForward, kDepthwise, kInput, kWeight };

struct ConvPlan final : KernelPlan {
  Which which = Which::kForward;
  Kind native = kF32;                    // the compute type: an output of another kind is buffered
  int64_t stride[2], padding[2], dilation[2], groups;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) ConvParams;
    // Forward: out, x, w, bias. Input: gx, grad, w. Weight: gw, grad, x.
    const bool forward = which == Which::kForward || which == Which::kDepthwise;
    const Tensor& x = tensor_of(call, forward ? 1 : which == Which::kInput ? 0 : 2);
    const Tensor& y = tensor_of(call, forward ? 0 : 1);
    const Tensor& w = tensor_of(call, forward ? 2 : which == Which::kInput ? 2 : 0);
    p->images = y.sizes[0];
    p->groups = groups;
    p->in_channels = x.sizes[1] / groups;
    p->out_channels = y.sizes[1] / groups;
    for (uint32_t i = 0; i < 2; ++i) {
      p->in[i] = x.sizes[2 + i];
      p->out[i] = y.sizes[2 + i];
      p->kernel[i] = w.sizes[2 + i];
      p->stride[i] = stride[i];
      p->padding[i] = padding[i];
      p->dilation[i] = dilation[i];
      p->x_at[i] = bytes(x, 2 + i);
      p->y_at[i] = bytes(y, 2 + i);
      p->w_at[i] = bytes(w, 2 + i);
    }
    p->x_image = bytes(x, 0);
    p->x_channel = bytes(x, 1);
    p->y_image = bytes(y, 0);
    p->y_channel = bytes(y, 1);
    p->w_out = bytes(w, 0);
    p->w_in = bytes(w, 1);
    p->x_kind = kind_of(x.dtype);
    p->y_kind = kind_of(y.dtype);
    p->w_kind = kind_of(w.dtype);
    p->has_bias = forward && given(call, 3);
    p->bias_stride = 0;
    p->bias_kind = kF32;
    if (p->has_bias) {
      const Tensor& bias = tensor_of(call, 3);
      p->bias_kind = kind_of(bias.dtype);
      p->bias_stride = bytes(bias, 0);
    }
    int64_t rows = which == Which::kInput ? p->in_channels : p->out_channels;
    int64_t columns = which == Which::kWeight ? p->in_channels * p->kernel[0] * p->kernel[1]
                      : which == Which::kInput ? p->in[0] * p->in[1] : p->out[0] * p->out[1];
    const bool dense = which == Which::kForward  ? p->y_at[0] == p->out[1] * p->y_at[1]
                       : which == Which::kInput && p->x_at[0] == p->in[1] * p->x_at[1];
    const Kind to = which == Which::kForward ? p->y_kind : p->x_kind;
    const bool buffered = which == Which::kWeight || !dense || to != native;
    // Planes: tall tiles, so that a patch is packed for as many channels as possible. Gradient of weights: 96 x 128.
    p->tile_m = std::max<int64_t>(1, std::min<int64_t>(rows, buffered ? 96 : 192));
    p->tiles_m = (rows + p->tile_m - 1) / p->tile_m;
    if (p->tiles_m > 0) p->tile_m = (rows + p->tiles_m - 1) / p->tiles_m;
    p->tile_n = std::max<int64_t>(1, std::min<int64_t>(columns, buffered ? 128 : 512));
    p->tiles_n = (columns + p->tile_n - 1) / p->tile_n;
    int64_t units = which == Which::kDepthwise ? p->images * y.sizes[1]
                    : which == Which::kWeight  ? groups * p->tiles_m * p->tiles_n
                                               : p->images * groups * p->tiles_m * p->tiles_n;
    out.groups[0] = units > 0 ? static_cast<uint64_t>(units) : 1;
    add_value(out, sizeof(ConvParams));
    add_memory(out, call, 0);
    add_operand(out, call, 1);
    add_operand(out, call, 2);
    if (forward) add_optional(out, call, 3);
  }
};

}  // namespace

PlanPtr plan_conv(const Call& proto, const char** reason) {
  const bool forward = proto.op == FLHAL_OP_CONV2D;
  for (uint32_t i = 0; i < tensor_count(proto); ++i) {
    if (!given(proto, i)) continue;
    const Tensor& t = tensor_of(proto, i);
    Kind kind = kind_of(t.dtype);
    if (kind != kF32 && kind != kF64 && kind != kF16 && kind != kBF16) { *reason = "convolution exists for floating point only"; return nullptr; }
    if (i < 3 && t.rank != 4) { *reason = "conv2d needs operands of rank 4"; return nullptr; }
  }
  uint32_t keys[4];
  switch (proto.op) {
    case FLHAL_OP_CONV2D:
      keys[0] = FLHAL_ATTR_CONV2D_STRIDE; keys[1] = FLHAL_ATTR_CONV2D_PADDING; keys[2] = FLHAL_ATTR_CONV2D_DILATION;
      keys[3] = FLHAL_ATTR_CONV2D_GROUPS;
      break;
    case FLHAL_OP_CONV2D_BACKWARD_INPUT:
      keys[0] = FLHAL_ATTR_CONV2D_BACKWARD_INPUT_STRIDE; keys[1] = FLHAL_ATTR_CONV2D_BACKWARD_INPUT_PADDING;
      keys[2] = FLHAL_ATTR_CONV2D_BACKWARD_INPUT_DILATION; keys[3] = FLHAL_ATTR_CONV2D_BACKWARD_INPUT_GROUPS;
      break;
    default:
      keys[0] = FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_STRIDE; keys[1] = FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_PADDING;
      keys[2] = FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_DILATION; keys[3] = FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_GROUPS;
  }
  auto plan = std::make_unique<ConvPlan>();
  for (uint32_t i = 0; i < 2; ++i) {
    plan->stride[i] = attr_ints(proto, keys[0], i, 1);
    plan->padding[i] = attr_ints(proto, keys[1], i, 0);
    plan->dilation[i] = attr_ints(proto, keys[2], i, 1);
    if (plan->stride[i] < 1 || plan->dilation[i] < 1) { *reason = "conv2d needs strides and dilations of 1 or more"; return nullptr; }
  }
  plan->groups = attr_int(proto, keys[3], 1);
  if (plan->groups < 1) { *reason = "conv2d needs 1 group or more"; return nullptr; }
  const Tensor& y = tensor_of(proto, forward ? 0 : 1);
  const Tensor& w = tensor_of(proto, proto.op == FLHAL_OP_CONV2D_BACKWARD_WEIGHT ? 0 : 2);
  const bool depthwise = forward && w.sizes[1] == 1 && plan->groups > 1 && y.sizes[1] / plan->groups <= 4;
  if (forward) plan->depends_on = FLHAL_DEPENDS_SIZES;   // depthwise or not is a matter of sizes
  Kind kind = proto.compute_dtype != 0 ? kind_of(proto.compute_dtype) : kind_of(tensor_of(proto, 1).dtype);
  const bool is_double = kind == kF64;
  plan->native = is_double ? kF64 : kF32;
  Named which;
  if (depthwise) {
    plan->which = Which::kDepthwise;
    which = is_double ? kNamed_conv2d_depthwise_f64 : kNamed_conv2d_depthwise_f32;
  } else if (forward) {
    which = is_double ? kNamed_conv2d_f64 : kNamed_conv2d_f32;
  } else if (proto.op == FLHAL_OP_CONV2D_BACKWARD_INPUT) {
    plan->which = Which::kInput;
    which = is_double ? kNamed_conv2d_backward_input_f64 : kNamed_conv2d_backward_input_f32;
  } else {
    plan->which = Which::kWeight;
    which = is_double ? kNamed_conv2d_backward_weight_f64 : kNamed_conv2d_backward_weight_f32;
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
