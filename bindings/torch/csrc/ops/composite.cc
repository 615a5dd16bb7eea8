// csrc/ops/composite.cc: linear, matmul and scaled_dot_product_attention in one to three flhal calls instead of the ten ATen
// calls that torch's composites make (views, expands, copies of transposed operands).
//
// Idea: flhal's matmul broadcasts batches, reads any strides and adds a third operand, so no view has to be made. Only where no
// gradient is wanted: with one, torch's own composites run, whose parts have gradients. What is not plain (mixed dtypes, other
// ranks, masks) also goes to torch's composites.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/matmul_native.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include <cmath>

#include "csrc/ops/registry.h"

namespace torch_fl {
namespace {

using c10::DimVector;

bool ours_alone(c10::DispatchKeySet keys) {
  return (keys & c10::after_ADInplaceOrView_keyset) == c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
}

// No gradient, backward or forward, can flow through `t` now.
bool no_gradient(const at::Tensor& t) {
  if (!t.defined() || t.unsafeGetTensorImpl()->autograd_meta() == nullptr) return true;
  return !(at::GradMode::is_enabled() && t.requires_grad()) && !t._fw_grad(/*level=*/0).defined();
}

bool same_float(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && c10::isFloatingType(a.scalar_type()) && a.device() == b.device() &&
         a.layout() == at::kStrided && b.layout() == at::kStrided;
}

const std::string kLinear = "aten::linear", kMatmul = "aten::matmul", kAttention = "aten::scaled_dot_product_attention";

// An undefined tensor: not one of the plain cases, or declined.
at::Tensor plain_linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  if (x.dim() < 2 || w.dim() != 2 || x.size(-1) != w.size(1) || x.numel() == 0 || w.numel() == 0 || !same_float(x, w)) return {};
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != w.size(0) || !same_float(x, bias))) return {};
  if (x.dim() > 2 && !x.is_contiguous()) return {};
  const int64_t n = w.size(0), k = w.size(1), m = x.numel() / k;
  DimVector sizes(x.sizes().begin(), x.sizes().end());
  sizes.back() = n;
  at::Tensor out = empty_contiguous(sizes, x.scalar_type(), x.device().index());
  const int64_t rows[2] = {m, k}, dense[2] = {k, 1}, result[2] = {m, n}, result_strides[2] = {n, 1};
  const int64_t turned[2] = {k, n}, turned_strides[2] = {w.stride(1), w.stride(0)};
  AtenScope scope(&kLinear);
  OpCall call(FLHAL_OP_MATMUL, x.scalar_type());
  call.out_as(out, result, result_strides);
  if (x.dim() == 2) call.in(x);
  else call.in_as(x, rows, dense);
  call.in_as(w, turned, turned_strides);
  call.in_or_absent(bias);
  return submit(call, x.device().index()) ? out : at::Tensor();
}

at::Tensor linear_untracked(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias) {
  at::Tensor out = plain_linear(x, w, bias.value_or(at::Tensor()));
  return out.defined() ? out : at::native::linear(x, w, bias);
}

at::Tensor linear_autograd(c10::DispatchKeySet keys, const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias) {
  if (ours_alone(keys) && no_gradient(x) && no_gradient(w) && (!bias.has_value() || no_gradient(*bias))) return linear_untracked(x, w, bias);
  return at::native::linear(x, w, bias);
}

at::Tensor plain_product(const at::Tensor& a, const at::Tensor& b, bool b_turned, double alpha) {
  DimVector sizes = at::infer_size_dimvector(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  DimVector b_sizes(b.sizes().begin(), b.sizes().end()), b_strides(b.strides().begin(), b.strides().end());
  if (b_turned) {
    std::swap(b_sizes[b.dim() - 1], b_sizes[b.dim() - 2]);
    std::swap(b_strides[b.dim() - 1], b_strides[b.dim() - 2]);
  }
  sizes.push_back(a.size(-2));
  sizes.push_back(b_sizes.back());
  at::Tensor out = empty_contiguous(sizes, a.scalar_type(), a.device().index());
  OpCall call(FLHAL_OP_MATMUL, a.scalar_type());
  call.out(out);
  call.in(a);
  call.in_as(b, b_sizes, b_strides);
  call.in_absent();
  if (alpha != 1.0) call.attr(FLHAL_ATTR_MATMUL_ALPHA, alpha, true);
  return submit(call, a.device().index()) ? out : at::Tensor();
}

at::Tensor matmul_untracked(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() >= 2 && b.dim() >= 2 && a.dim() + b.dim() > 4 && same_float(a, b) && a.size(-1) == b.size(-2) && a.numel() != 0 &&
      b.numel() != 0) {
    AtenScope scope(&kMatmul);
    at::Tensor out = plain_product(a, b, false, 1.0);
    if (out.defined()) return out;
  }
  return at::native::matmul(a, b);
}

at::Tensor matmul_autograd(c10::DispatchKeySet keys, const at::Tensor& a, const at::Tensor& b) {
  return ours_alone(keys) && no_gradient(a) && no_gradient(b) ? matmul_untracked(a, b) : at::native::matmul(a, b);
}

// softmax(scale * q @ k^T) @ v. The softmax writes over the scores.
at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) {
  AtenScope scope(&kAttention);
  at::Tensor scores = plain_product(q, k, true, scale);
  if (!scores.defined()) return {};
  at::Tensor weights = empty_contiguous(scores.sizes(), scores.scalar_type(), scores.device().index());
  OpCall call(FLHAL_OP_SOFTMAX, scores.scalar_type());
  call.out(weights);
  call.in(scores);
  call.attr(FLHAL_ATTR_SOFTMAX_DIM, scores.dim() - 1);
  if (!submit(call, scores.device().index())) return {};
  return plain_product(weights, v, false, 1.0);
}

at::Tensor attention_untracked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& mask,
                               double dropout, bool causal, std::optional<double> scale, bool gqa) {
  const bool masked = mask.has_value() && mask->defined();
  // Half types: torch's composite keeps more digits between its steps than three roundings do.
  if (!masked && dropout == 0.0 && !causal && !gqa && q.dim() >= 3 && q.dim() == k.dim() && q.dim() == v.dim() && same_float(q, k) &&
      same_float(q, v) && !c10::isReducedFloatingType(q.scalar_type()) && q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2) &&
      q.numel() != 0 && k.numel() != 0 && v.numel() != 0 && q.sizes().slice(0, q.dim() - 2) == k.sizes().slice(0, k.dim() - 2) &&
      q.sizes().slice(0, q.dim() - 2) == v.sizes().slice(0, v.dim() - 2)) {
    at::Tensor out = plain_attention(q, k, v, scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1)))));
    if (out.defined()) return out;
  }
  return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, gqa);
}

at::Tensor attention_autograd(c10::DispatchKeySet keys, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale, bool gqa) {
  if (ours_alone(keys) && no_gradient(q) && no_gradient(k) && no_gradient(v) && (!mask.has_value() || no_gradient(*mask)))
    return attention_untracked(q, k, v, mask, dropout, causal, scale, gqa);
  return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, gqa);
}

// The choice is math: the fused ones are kernels of other devices.
int64_t fused_sdp_choice(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, double, bool,
                         std::optional<double>, bool) {
  return 0;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linear", TORCH_FN(linear_untracked));
  m.impl("matmul", TORCH_FN(matmul_untracked));
  m.impl("scaled_dot_product_attention", TORCH_FN(attention_untracked));
  m.impl("_fused_sdp_choice", TORCH_FN(fused_sdp_choice));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("linear", TORCH_FN(linear_autograd));
  m.impl("matmul", TORCH_FN(matmul_autograd));
  m.impl("scaled_dot_product_attention", TORCH_FN(attention_autograd));
}

}  // namespace torch_fl
