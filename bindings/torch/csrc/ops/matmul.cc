// csrc/ops/matmul.cc: products of matrices and vectors, all by flhal's matmul: out = alpha * a @ b + beta * c.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

void scale_attrs(OpCall& call, const c10::Scalar& beta, const c10::Scalar& alpha) {
  if (alpha.isComplex() || alpha.toDouble() != 1.0) call.attr(FLHAL_ATTR_MATMUL_ALPHA, alpha, true);
  if (beta.isComplex() || beta.toDouble() != 1.0) call.attr(FLHAL_ATTR_MATMUL_BETA, beta, true);
}

bool is_zero(const c10::Scalar& s) { return !s.isComplex() && s.toDouble() == 0.0; }

// A sum over no products: beta * c, or 0.
bool empty_product(Frame& f, const at::Tensor& c, const c10::Scalar& beta) {
  const at::Tensor& out = f.result();
  if (!c.defined() || is_zero(beta)) return f.fill(out, 0);
  OpCall call(FLHAL_OP_MUL, out.scalar_type());
  call.out(out);
  call.in(c);
  call.in_scalar(beta, out.scalar_type());
  return f.submit(call);
}

// A vector as a column.
struct Column {
  int64_t sizes[2], strides[2];
  explicit Column(const at::Tensor& v) : sizes{v.dim() == 0 ? 1 : v.size(0), 1}, strides{v.dim() == 0 ? 1 : v.stride(0), 1} {}
};

}  // namespace

// mm(self, mat2), bmm(self, mat2)
bool mm(Frame& f) {
  if (f.result().numel() == 0) return true;
  const at::Tensor& a = f.tensor(0);
  if (a.size(-1) == 0) return empty_product(f, {}, 0);
  OpCall call(FLHAL_OP_MATMUL, f.compute);
  call.out(f.result());
  call.in(a);
  call.in(f.tensor(1));
  call.in_absent();
  return f.submit(call);
}

// addmm, baddbmm (self, a, b, beta, alpha). self is not read when beta is 0.
bool addmm(Frame& f) {
  if (f.result().numel() == 0) return true;
  const at::Tensor& a = f.tensor(1);
  c10::Scalar beta = f.args[3].toScalar(), alpha = f.args[4].toScalar();
  if (a.size(-1) == 0) return empty_product(f, f.tensor(0), beta);
  OpCall call(FLHAL_OP_MATMUL, f.compute);
  call.out(f.result());
  call.in(a);
  call.in(f.tensor(2));
  if (is_zero(beta)) call.in_absent();
  else call.in(f.tensor(0));
  scale_attrs(call, is_zero(beta) ? c10::Scalar(1) : beta, alpha);
  return f.submit(call);
}

// mv(self, vec)
bool mv(Frame& f) {
  if (f.result().numel() == 0) return true;
  const at::Tensor &a = f.tensor(0), &v = f.tensor(1);
  if (a.size(1) == 0) return empty_product(f, {}, 0);
  Column in(v), out(f.result());
  OpCall call(FLHAL_OP_MATMUL, f.compute);
  call.out_as(f.result(), out.sizes, out.strides);
  call.in(a);
  call.in_as(v, in.sizes, in.strides);
  call.in_absent();
  return f.submit(call);
}

// addmv(self, mat, vec, beta, alpha)
bool addmv(Frame& f) {
  if (f.result().numel() == 0) return true;
  const at::Tensor &self = f.tensor(0), &a = f.tensor(1), &v = f.tensor(2);
  c10::Scalar beta = f.args[3].toScalar(), alpha = f.args[4].toScalar();
  if (a.size(1) == 0) return empty_product(f, self, beta);
  Column in(v), out(f.result()), add(self);
  OpCall call(FLHAL_OP_MATMUL, f.compute);
  call.out_as(f.result(), out.sizes, out.strides);
  call.in(a);
  call.in_as(v, in.sizes, in.strides);
  if (is_zero(beta)) call.in_absent();
  else call.in_as(self, add.sizes, add.strides);
  scale_attrs(call, is_zero(beta) ? c10::Scalar(1) : beta, alpha);
  return f.submit(call);
}

// dot(self, tensor): a row times a column.
bool dot(Frame& f) {
  const at::Tensor &a = f.tensor(0), &b = f.tensor(1);
  if (a.numel() == 0) return empty_product(f, {}, 0);
  if (c10::isComplexType(a.scalar_type())) return f.decline("dot of complex numbers");
  int64_t row_sizes[2] = {1, a.size(0)}, row_strides[2] = {a.size(0), a.stride(0)}, one[2] = {1, 1};
  Column column(b);
  OpCall call(FLHAL_OP_MATMUL, f.compute);
  call.out_as(f.result(), one, one);
  call.in_as(a, row_sizes, row_strides);
  call.in_as(b, column.sizes, column.strides);
  call.in_absent();
  return f.submit(call);
}

}  // namespace torch_fl
