// csrc/ops/distance_loss.cc: mse_loss, smooth_l1_loss, huber_loss and their gradients, from rows that every chip has.
//
// With d = self - target, z = |d| and m = min(z, delta): huber = m (z - m / 2), smooth_l1(beta) = huber(beta) / beta. Their
// gradients are d held between -delta and delta. Formulas: torch.nn.HuberLoss, torch.nn.SmoothL1Loss.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

bool plain(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && c10::isFloatingType(a.scalar_type()) && a.numel() != 0 && b.numel() != 0;
}

bool difference(Frame& f, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  OpCall call(FLHAL_OP_SUB, out.scalar_type());
  call.out(out);
  call.in(a);
  call.in(b);
  return f.submit(call);
}

// t = t * factor
template <typename Factor>
bool scale(Frame& f, const at::Tensor& t, const Factor& factor) {
  OpCall call(FLHAL_OP_MUL, t.scalar_type());
  call.out(t);
  call.in(t);
  if constexpr (std::is_same_v<Factor, at::Tensor>) call.in(factor);
  else call.in_scalar(factor, t.scalar_type());
  return f.submit(call);
}

// each = the loss per element; `threshold` 0: squared error, else huber.
bool loss_of_each(Frame& f, const at::Tensor& each, double threshold) {
  if (!difference(f, each, f.tensor(0), f.tensor(1))) return false;
  if (threshold == 0) return scale(f, each, each);
  at::Tensor least = f.temporary(each.sizes(), each.scalar_type());
  OpCall size(FLHAL_OP_ABS, each.scalar_type());
  size.out(each);
  size.in(each);
  OpCall hold(FLHAL_OP_MINIMUM, each.scalar_type());
  hold.out(least);
  hold.in(each);
  hold.in_scalar(threshold, each.scalar_type());
  OpCall rest(FLHAL_OP_SUB, each.scalar_type());
  rest.out(each);
  rest.in(each);
  rest.in(least);
  rest.attr(FLHAL_ATTR_SUB_ALPHA, 0.5, true);
  return f.submit(size) && f.submit(hold) && f.submit(rest) && scale(f, each, least);
}

bool loss(Frame& f, double threshold, double divisor) {
  const at::Tensor &self = f.tensor(0), &target = f.tensor(1), &out = f.result();
  if (!plain(self, target)) return f.decline("a loss of mixed, integer or empty tensors");
  if (!f.fresh_results()) return f.decline("a loss with out=");
  const int64_t reduction = f.args[2].toInt();
  const bool reduced = reduction != at::Reduction::None;
  at::Tensor each = reduced ? f.temporary(at::infer_size(self.sizes(), target.sizes()), self.scalar_type()) : out;
  if (!loss_of_each(f, each, threshold)) return false;
  if (divisor != 1 && !scale(f, each, 1 / divisor)) return false;
  if (!reduced) return true;
  const int64_t one[1] = {1}, all[1] = {each.numel()};
  OpCall call(reduction == at::Reduction::Mean ? FLHAL_OP_MEAN : FLHAL_OP_SUM, out.scalar_type());
  call.out_as(out, one, one);
  call.in_as(each, all, one);
  return f.submit(call);
}

bool gradient(Frame& f, int64_t reduction, double threshold, double factor) {
  const at::Tensor &grad = f.tensor(0), &self = f.tensor(1), &target = f.tensor(2), &out = f.result();
  if (!plain(self, target) || grad.dtype() != self.dtype()) return f.decline("the gradient of a loss of mixed, integer or empty tensors");
  if (!f.fresh_results()) return f.decline("the gradient of a loss with out=");
  if (!difference(f, out, self, target)) return false;
  if (threshold != 0) {
    OpCall hold(FLHAL_OP_CLAMP, out.scalar_type());
    hold.out(out);
    hold.in(out);
    hold.in_scalar(-threshold, out.scalar_type());
    hold.in_scalar(threshold, out.scalar_type());
    if (!f.submit(hold)) return false;
  }
  if (reduction == at::Reduction::Mean) factor /= static_cast<double>(out.numel());
  return (factor == 1 || scale(f, out, factor)) && scale(f, out, grad);
}

}  // namespace

bool mse_loss(Frame& f) { return loss(f, 0, 1); }                                       // (self, target, reduction)
bool mse_loss_backward(Frame& f) { return gradient(f, f.args[3].toInt(), 0, 2); }       // (grad, self, target, reduction)
bool huber_loss(Frame& f) { return loss(f, f.args[3].toDouble(), 1); }                  // (..., delta)
bool huber_loss_backward(Frame& f) { return gradient(f, f.args[3].toInt(), f.args[4].toDouble(), 1); }
bool smooth_l1_loss(Frame& f) {                                                         // (..., beta)
  const double beta = f.args[3].toDouble();
  return beta > 0 ? loss(f, beta, beta) : f.decline("smooth_l1_loss with beta 0");
}
bool smooth_l1_loss_backward(Frame& f) {
  const double beta = f.args[4].toDouble();
  return beta > 0 ? gradient(f, f.args[3].toInt(), beta, 1 / beta) : f.decline("smooth_l1_loss_backward with beta 0");
}

}  // namespace torch_fl
