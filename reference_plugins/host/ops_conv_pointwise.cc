// reference_plugins/host/ops_conv_pointwise.cc: 1x1 convolution of NCHW tensors as a matrix product.
//
// With stride 1 and no padding out[n] = w @ x[n], where x[n] is a dense matrix of channels by pixels: nothing needs another
// layout. oneDNN's convolution would reorder x, w and out: ResNet-50's eight 1x1 shapes took 0.9 to 5 times torch's time
// that way, and 0.6 to 0.9 this way (bench/host_ops_bench.py).
#include "ops_makers.h"

namespace flhal::host {
namespace {

// A view of an operand of the convolution as an operand of matmul.
struct View {
  int operand = -1;            // of the convolution's call; -1: absent
  int64_t sizes[3], strides[3];
  uint16_t rank = 0;
};

class PointwiseConvPlan final : public flhal_p_plan {
 public:
  View views[4];               // out, a, b, c of the product
  std::unique_ptr<flhal_p_plan> product;

  void belong_to(flhal_p_device* d) override {
    device = d;
    product->belong_to(d);
  }

  flhal_op_call_v1 translate(const flhal_op_call_v1& call, flhal_tensor_v1 (&tensors)[4]) const {
    for (int i = 0; i < 4; ++i) {
      const View& v = views[i];
      tensors[i] = v.operand < 0 ? flhal_tensor_v1{} : tensor_of(call, v.operand);
      if (v.operand < 0) tensors[i].flags = FLHAL_TENSOR_ABSENT;
      tensors[i].sizes = v.sizes, tensors[i].strides = v.strides, tensors[i].rank = v.rank;
    }
    flhal_op_call_v1 matmul = call;
    matmul.op = FLHAL_OP_MATMUL;
    matmul.tensors = tensors, matmul.tensor_stride = sizeof tensors[0];
    matmul.n_outputs = 1, matmul.n_inputs = 3, matmul.n_groups = 4, matmul.groups = nullptr;
    matmul.attrs = nullptr, matmul.n_attrs = 0;
    return matmul;
  }

  flhal_status run(const flhal_op_call_v1& call, void* workspace) const override {
    flhal_tensor_v1 tensors[4];
    return product->run(translate(call, tensors), workspace);
  }
};

bool dense_planes(const flhal_tensor_v1& t) {
  return (t.sizes[3] == 1 || t.strides[3] == 1) && (t.sizes[2] == 1 || t.strides[2] == t.sizes[3]);
}

// A tensor of rank 4 as [n, channels, pixels].
View image(int operand, const flhal_tensor_v1& t) {
  const int64_t pixels = t.sizes[2] * t.sizes[3];
  return {operand, {t.sizes[0], t.sizes[1], pixels}, {t.strides[0], t.strides[1], 1}, 3};
}

}  // namespace

const char* make_pointwise_conv2d(const flhal_op_call_v1& call, flhal_plan_info_v1& info, std::unique_ptr<flhal_p_plan>& out) {
  const bool forward = call.op == FLHAL_OP_CONV2D;   // (out; x, w, bias?), else (gx; grad, w)
  const flhal_tensor_v1 &to = tensor_of(call, 0), &from = tensor_of(call, 1), &w = tensor_of(call, 2);
  const uint32_t keys = call.op << 8;
  bool fits = to.rank == 4 && from.rank == 4 && w.rank == 4 && w.sizes[2] == 1 && w.sizes[3] == 1 &&
              integer_attr(call, keys | 4, 1) == 1 && to.dtype == FLHAL_F32;
  for (uint32_t i = 0; fits && i < 2; ++i)
    fits = element_attr(call, keys | 1, i, 1) == 1 && element_attr(call, keys | 2, i, 0) == 0;
  if (!fits || !dense_planes(to) || !dense_planes(from)) return "not a 1x1 convolution of dense planes";
  const int64_t pixels = to.sizes[2] * to.sizes[3];
  if (pixels < 4) return "too few pixels for a matrix product";

  auto plan = std::make_unique<PointwiseConvPlan>();
  plan->views[0] = image(0, to);
  plan->views[1] = forward ? View{2, {w.sizes[0], w.sizes[1]}, {w.strides[0], w.strides[1]}, 2}
                           : View{2, {w.sizes[1], w.sizes[0]}, {w.strides[1], w.strides[0]}, 2};
  plan->views[2] = image(1, from);
  if (forward && call.n_inputs > 2 && given(tensor_of(call, 3)))
    plan->views[3] = {3, {w.sizes[0], 1}, {tensor_of(call, 3).strides[0], 1}, 2};
  flhal_tensor_v1 tensors[4];
  if (const char* reason = make_matmul(plan->translate(call, tensors), info, plan->product)) return reason;
  out = std::move(plan);
  return nullptr;
}

}  // namespace flhal::host
