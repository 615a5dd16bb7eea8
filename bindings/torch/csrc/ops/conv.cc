// csrc/ops/conv.cc: convolution and its backward. One-dimensional ones are two-dimensional with height 1; a transposed one
// is the input gradient of the plain one.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"
#include "csrc/ops/infer.h"

namespace torch_fl {
namespace {

// A tensor seen with four dimensions.
struct Planes {
  const at::Tensor& t;
  c10::SmallVector<int64_t, 4> sizes, strides;
  explicit Planes(const at::Tensor& x) : t(x), sizes(x.sizes().begin(), x.sizes().end()), strides(x.strides().begin(), x.strides().end()) {
    if (sizes.size() == 3) {
      sizes.insert(sizes.begin() + 2, 1);
      strides.insert(strides.begin() + 2, sizes[3] * strides[2]);
    }
  }
};

struct Geometry {
  int64_t stride[2], padding[2], dilation[2], groups;
  Geometry(Frame& f, uint32_t first, uint32_t groups_at) : groups(f.args[groups_at].toInt()) {
    read(f.args[first], stride, 1);
    read(f.args[first + 1], padding, 0);
    read(f.args[first + 2], dilation, 1);
  }
  static void read(const c10::IValue& v, int64_t (&to)[2], int64_t missing) {
    c10::DimVector d = dims_of(v);
    to[0] = d.size() > 1 ? d[0] : missing;
    to[1] = d.empty() ? missing : d.back();
  }
};

// Attribute numbers are the same in the three convolution ops: stride, padding, dilation, groups.
void add_geometry(OpCall& call, uint32_t op, const Geometry& g) {
  call.attr(op << 8 | 1, c10::IntArrayRef(g.stride));
  call.attr(op << 8 | 2, c10::IntArrayRef(g.padding));
  call.attr(op << 8 | 3, c10::IntArrayRef(g.dilation));
  call.attr(op << 8 | 4, g.groups);
}
static_assert(FLHAL_ATTR_CONV2D_STRIDE == (FLHAL_OP_CONV2D << 8 | 1) && FLHAL_ATTR_CONV2D_PADDING == (FLHAL_OP_CONV2D << 8 | 2));
static_assert(FLHAL_ATTR_CONV2D_DILATION == (FLHAL_OP_CONV2D << 8 | 3) && FLHAL_ATTR_CONV2D_GROUPS == (FLHAL_OP_CONV2D << 8 | 4));
static_assert(FLHAL_ATTR_CONV2D_BACKWARD_INPUT_GROUPS == (FLHAL_OP_CONV2D_BACKWARD_INPUT << 8 | 4));
static_assert(FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_GROUPS == (FLHAL_OP_CONV2D_BACKWARD_WEIGHT << 8 | 4));

// Output padding from a stride on: the plain convolution of such a result is wider than the operand it came from, so it is not
// that one's gradient.
bool beyond_gradient(const c10::IValue& output_padding, const Geometry& g) {
  int64_t extra[2];
  Geometry::read(output_padding, extra, 0);
  return extra[0] >= g.stride[0] || extra[1] >= g.stride[1];
}
constexpr const char* kBeyond = "a transposed convolution with output padding of a stride or more";

// op(out; a, b, bias?)
bool run(Frame& f, uint32_t op, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor* bias,
         const Geometry& g) {
  Planes po(out), pa(a), pb(b);
  OpCall call(op, out.scalar_type());
  call.out_as(out, po.sizes, po.strides);
  call.in_as(a, pa.sizes, pa.strides);
  call.in_as(b, pb.sizes, pb.strides);
  if (op == FLHAL_OP_CONV2D) call.in_or_absent(bias != nullptr ? *bias : at::Tensor());
  add_geometry(call, op, g);
  return f.submit(call);
}

// out += bias per channel
bool add_bias(Frame& f, const at::Tensor& out, const at::Tensor& bias) {
  if (!bias.defined()) return true;
  Planes po(out);
  int64_t sizes[4] = {1, bias.size(0), 1, 1}, strides[4] = {0, bias.stride(0), 0, 0};
  OpCall call(FLHAL_OP_ADD, out.scalar_type());
  call.out_as(out, po.sizes, po.strides);
  call.in_as(out, po.sizes, po.strides);
  call.in_as(bias, sizes, strides);
  return f.submit(call);
}

}  // namespace

// convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
bool convolution(Frame& f) {
  const at::Tensor &x = f.tensor(0), &w = f.tensor(1), &bias = f.tensor(2);
  if (f.result().numel() == 0) return true;
  if (x.dim() < 3 || x.dim() > 4) return f.decline("convolution over other than one or two dimensions");
  if (x.numel() == 0) return f.decline("convolution of nothing");
  Geometry g(f, 3, 8);
  if (!f.args[6].toBool()) return run(f, FLHAL_OP_CONV2D, f.result(), x, w, &bias, g);
  if (beyond_gradient(f.args[7], g)) return f.decline(kBeyond);
  return run(f, FLHAL_OP_CONV2D_BACKWARD_INPUT, f.result(), x, w, nullptr, g) && add_bias(f, f.result(), bias);
}

// convolution_backward(grad_output, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding, groups,
//                      output_mask) -> (grad_input, grad_weight, grad_bias)
bool convolution_backward(Frame& f) {
  const at::Tensor &grad = f.tensor(0), &x = f.tensor(1), &w = f.tensor(2);
  if (x.dim() < 3 || x.dim() > 4) return f.decline("convolution over other than one or two dimensions");
  const at::Tensor &gx = f.result(0), &gw = f.result(1), &gb = f.result(2);
  if (x.numel() == 0 || grad.numel() == 0 || w.numel() == 0) return f.fill(gx, 0) && f.fill(gw, 0) && f.fill(gb, 0);
  const bool transposed = f.args[7].toBool();
  Geometry g(f, 4, 9);
  if (transposed && beyond_gradient(f.args[8], g)) return f.decline(kBeyond);
  if (gx.defined()) {
    bool done = transposed ? run(f, FLHAL_OP_CONV2D, gx, grad, w, nullptr, g)
                           : run(f, FLHAL_OP_CONV2D_BACKWARD_INPUT, gx, grad, w, nullptr, g);
    if (!done) return false;
  }
  if (gw.defined()) {
    bool done = transposed ? run(f, FLHAL_OP_CONV2D_BACKWARD_WEIGHT, gw, x, grad, nullptr, g)
                           : run(f, FLHAL_OP_CONV2D_BACKWARD_WEIGHT, gw, grad, x, nullptr, g);
    if (!done) return false;
  }
  if (!gb.defined()) return true;
  Planes pg(grad);
  int64_t sizes[4] = {1, gb.size(0), 1, 1}, strides[4] = {1, gb.stride(0), 1, 1};
  OpCall sum(FLHAL_OP_SUM, gb.scalar_type());
  sum.out_as(gb, sizes, strides);
  sum.in_as(grad, pg.sizes, pg.strides);
  return f.submit(sum);
}

// Operands of channels_last make results of channels_last, as in at::native's convolution for the CPU: the input (1) or the
// weight (2) decides.
uint32_t convolution_format(const Frame& f) {
  const bool backward = f.entry.n_results == 3;
  const at::Tensor &x = f.tensor(backward ? 1 : 0), &w = f.tensor(backward ? 2 : 1);
  if (x.dim() != 4 || w.dim() != 4) return 0;
  const auto last = [](const at::Tensor& t) { return t.suggest_memory_format() == c10::MemoryFormat::ChannelsLast; };
  return (last(x) ? 1u : 0u) | (last(w) ? 2u : 0u);
}

void lay_out_convolution(const Frame& f, Spec* spec) {
  const uint32_t format = convolution_format(f);
  if (format == 0) return;
  for (size_t i = 0; i < spec->outs.size(); ++i) {
    OutSpec& out = spec->outs[i];
    if (out.sizes.size() != 4) continue;
    const bool weight_gradient = f.entry.n_results == 3 && i == 1;
    if (weight_gradient && (format & 2u) == 0 && out.sizes[2] * out.sizes[3] == 1) continue;   // follows the weight then
    const int64_t c = out.sizes[1], h = out.sizes[2], wide = out.sizes[3];
    out.strides = {c * h * wide, 1, c * wide, c};
    out.contiguous = false;
  }
}

}  // namespace torch_fl
