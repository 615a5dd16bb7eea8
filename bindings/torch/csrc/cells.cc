// csrc/cells.cc: operators that torch asks of a backend by name because it has no kernel for anyone else: overrideable
// convolutions, and the fused LSTM and GRU cells.
//
// Idea: convolutions are handed on to the plain operators; the cells are written out in device operators. The workspaces hold
// what the backward formulas need: LSTM the four activated gates, GRU reset, update, new, hx and the hidden part of new.
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace torch_fl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, at::IntArrayRef stride,
                   at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  return at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                                        bool transposed, at::IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  return at::convolution_backward(grad, input, weight, at::IntArrayRef{channels}, stride, padding, dilation, transposed,
                                  output_padding, groups, mask);
}

bool given(const OptionalTensor& t) { return t.has_value() && t->defined(); }

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) { return given(bias) ? gates.add(*bias) : gates; }

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const Tensor gates = with_bias(with_bias(input_gates.add(hidden_gates), input_bias), hidden_bias);
  const auto parts = gates.chunk(4, 1);
  const Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(), out = parts[3].sigmoid();
  const Tensor cy = forget.mul(cx).add(in.mul(cell));
  return {out.mul(cy.tanh()), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace, bool has_bias) {
  if (!given(grad_hy) && !given(grad_cy)) return {};
  const auto parts = workspace.chunk(4, 1);
  const Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const Tensor tanh_cy = cy.tanh();
  const Tensor ghy = given(grad_hy) ? *grad_hy : at::zeros_like(cx);
  Tensor gcy = ghy.mul(out).mul(tanh_cy.mul(tanh_cy).neg().add(1));
  if (given(grad_cy)) gcy = gcy.add(*grad_cy);
  auto sigmoid_slope = [](const Tensor& y) { return y.mul(y.neg().add(1)); };
  const Tensor gates = at::cat({gcy.mul(cell).mul(sigmoid_slope(in)), gcy.mul(cx).mul(sigmoid_slope(forget)),
                                gcy.mul(in).mul(cell.mul(cell).neg().add(1)), ghy.mul(tanh_cy).mul(sigmoid_slope(out))},
                               1);
  return {gates, gcy.mul(forget), has_bias ? gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto i = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto h = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = i[0].add(h[0]).sigmoid(), update = i[1].add(h[1]).sigmoid();
  const Tensor fresh = i[2].add(reset.mul(h[2])).tanh();
  return {fresh.add(update.mul(hx.sub(fresh))), at::cat({reset, update, fresh, hx, h[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& workspace, bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const Tensor g_fresh = grad.mul(update.neg().add(1)).mul(fresh.mul(fresh).neg().add(1));
  const Tensor g_update = grad.mul(hx.sub(fresh)).mul(update.mul(update.neg().add(1)));
  const Tensor g_reset = g_fresh.mul(hidden).mul(reset.mul(reset.neg().add(1)));
  const Tensor g_input = at::cat({g_reset, g_update, g_fresh}, 1);
  const Tensor g_hidden = at::cat({g_reset, g_update, g_fresh.mul(reset)}, 1);
  return {g_input, g_hidden, grad.mul(update), has_bias ? g_input.sum(0) : Tensor(), has_bias ? g_hidden.sum(0) : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace
}  // namespace torch_fl
