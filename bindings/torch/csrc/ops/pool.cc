// csrc/ops/pool.cc: pooling over two dimensions. A tensor without a batch dimension is a batch of one.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

struct Batch {
  c10::SmallVector<int64_t, 4> sizes, strides;
  explicit Batch(const at::Tensor& x) : sizes(x.sizes().begin(), x.sizes().end()), strides(x.strides().begin(), x.strides().end()) {
    if (sizes.size() == 3) {
      sizes.insert(sizes.begin(), 1);
      strides.insert(strides.begin(), sizes[1] * strides[0]);
    }
  }
};

struct Pair {
  int64_t v[2];
  Pair(const c10::IValue& from, const Pair* missing) {
    c10::DimVector d = dims_of(from);
    v[0] = d.empty() ? missing->v[0] : d[0];
    v[1] = d.empty() ? missing->v[1] : d.back();
  }
  explicit Pair(int64_t a, int64_t b) : v{a, b} {}
  operator c10::IntArrayRef() const { return v; }
};

}  // namespace

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> (out, indices)
bool max_pool2d(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (f.result().numel() == 0) return true;
  Pair kernel(f.args[1], nullptr), stride(f.args[2], &kernel), padding(f.args[3], nullptr), dilation(f.args[4], nullptr);
  Batch px(x), po(f.result(0)), pi(f.result(1));
  OpCall call(FLHAL_OP_MAX_POOL2D, x.scalar_type());
  call.out_as(f.result(0), po.sizes, po.strides);
  call.out_as(f.result(1), pi.sizes, pi.strides);
  call.in_as(x, px.sizes, px.strides);
  call.attr(FLHAL_ATTR_MAX_POOL2D_KERNEL, c10::IntArrayRef(kernel));
  call.attr(FLHAL_ATTR_MAX_POOL2D_STRIDE, c10::IntArrayRef(stride));
  call.attr(FLHAL_ATTR_MAX_POOL2D_PADDING, c10::IntArrayRef(padding));
  call.attr(FLHAL_ATTR_MAX_POOL2D_DILATION, c10::IntArrayRef(dilation));
  call.attr(FLHAL_ATTR_MAX_POOL2D_CEIL, static_cast<int64_t>(f.args[5].toBool()));
  return f.submit(call);
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
bool max_pool2d_backward(Frame& f) {
  if (f.result().numel() == 0) return true;
  const at::Tensor &grad = f.tensor(0), &index = f.tensor(7);
  if (grad.numel() == 0) return f.decline("max_pool2d_backward of nothing");
  Batch pg(grad), pi(index), po(f.result());
  OpCall call(FLHAL_OP_MAX_POOL2D_BACKWARD, f.result().scalar_type());
  call.out_as(f.result(), po.sizes, po.strides);
  call.in_as(grad, pg.sizes, pg.strides);
  call.in_as(index, pi.sizes, pi.strides);
  return f.submit(call);
}

// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override?)
bool avg_pool2d(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (f.result().numel() == 0) return true;
  Pair kernel(f.args[1], nullptr), stride(f.args[2], &kernel), padding(f.args[3], nullptr);
  Batch px(x), po(f.result());
  OpCall call(FLHAL_OP_AVG_POOL2D, x.scalar_type());
  call.out_as(f.result(), po.sizes, po.strides);
  call.in_as(x, px.sizes, px.strides);
  call.attr(FLHAL_ATTR_AVG_POOL2D_KERNEL, c10::IntArrayRef(kernel));
  call.attr(FLHAL_ATTR_AVG_POOL2D_STRIDE, c10::IntArrayRef(stride));
  call.attr(FLHAL_ATTR_AVG_POOL2D_PADDING, c10::IntArrayRef(padding));
  call.attr(FLHAL_ATTR_AVG_POOL2D_COUNT_INCLUDE_PAD, static_cast<int64_t>(f.args[5].toBool()));
  call.attr(FLHAL_ATTR_AVG_POOL2D_DIVISOR, f.args[6].isNone() ? int64_t{0} : f.args[6].toInt());
  call.attr(FLHAL_ATTR_AVG_POOL2D_CEIL, static_cast<int64_t>(f.args[4].toBool()));
  return f.submit(call);
}

// _adaptive_avg_pool2d(self, output_size): windows of one size when the output divides the input.
bool adaptive_avg_pool2d(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  int64_t h = x.size(-2), w = x.size(-1), oh = out.size(-2), ow = out.size(-1);
  if (h % oh != 0 || w % ow != 0) return f.decline("adaptive pooling with windows of unequal size");
  Pair kernel(h / oh, w / ow);
  Batch px(x), po(out);
  OpCall call(FLHAL_OP_AVG_POOL2D, x.scalar_type());
  call.out_as(out, po.sizes, po.strides);
  call.in_as(x, px.sizes, px.strides);
  call.attr(FLHAL_ATTR_AVG_POOL2D_KERNEL, c10::IntArrayRef(kernel));
  call.attr(FLHAL_ATTR_AVG_POOL2D_STRIDE, c10::IntArrayRef(kernel));
  return f.submit(call);
}

}  // namespace torch_fl
