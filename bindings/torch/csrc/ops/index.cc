// csrc/ops/index.cc: reading and writing where an index tensor says, and joining, cutting and counting.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>

#include "csrc/ops/cpu_verdict.h"
#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

bool copy_to(Frame& f, const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0 || to.is_same(from)) return true;
  OpCall call(FLHAL_OP_COPY, to.scalar_type());
  call.out(to);
  call.in(from);
  return f.submit(call);
}

bool make_dense(Frame& f, at::Tensor* t) {
  if (t->is_contiguous()) return true;
  at::Tensor dense = f.temporary(t->sizes(), t->scalar_type());
  if (!copy_to(f, dense, *t)) return false;
  *t = dense;
  return true;
}

// Results that start as a copy of self. With out= they would be written before a later call could decline.
bool start_from_self(Frame& f) { return copy_to(f, f.result(), f.tensor(0)); }

}  // namespace

// embedding(weight, indices, ...)
bool embedding(Frame& f) {
  if (f.result().numel() == 0) return true;
  OpCall call(FLHAL_OP_INDEX_SELECT, f.result().scalar_type());
  call.out(f.result());
  call.in(f.tensor(0));
  call.in(f.tensor(1));
  call.attr(FLHAL_ATTR_INDEX_SELECT_DIM, int64_t{0});
  return f.submit(call);
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
bool embedding_dense_backward(Frame& f) {
  at::Tensor grad = f.tensor(0), index = f.tensor(1);
  const at::Tensor& out = f.result();
  if (f.args[4].toBool()) return f.decline("embedding gradients scaled by frequency");
  if (!f.fresh_results()) return f.decline("embedding gradients with out=");
  if (!make_dense(f, &grad) || !make_dense(f, &index) || !f.fill(out, 0)) return false;
  const int64_t n = index.numel(), width = out.size(1), padding = f.args[3].toInt();
  if (n == 0 || width == 0) return true;
  int64_t rows[2] = {n, width}, row_strides[2] = {width, 1}, flat[1] = {n}, one[1] = {1};
  OpCall call(FLHAL_OP_INDEX_ADD, out.scalar_type());
  call.out(out);
  call.in_as(index, flat, one);
  call.in_as(grad, rows, row_strides);
  call.attr(FLHAL_ATTR_INDEX_ADD_DIM, int64_t{0});
  if (!f.submit(call)) return false;
  if (padding < 0 || padding >= out.size(0)) return true;
  return f.fill(out.select(0, padding), 0);
}

// index_select(self, dim, index)
bool index_select(Frame& f) {
  const at::Tensor &x = f.tensor(0), &index = f.tensor(2);
  // Every index is wrong there; which error that is depends on the rank.
  if (x.dim() != 0 && index.numel() != 0 && x.size(at::maybe_wrap_dim(f.args[1].toInt(), x.dim())) == 0) ask_cpu(f);
  if (f.result().numel() == 0) return true;
  if (x.dim() == 0) return f.decline("index_select of a number");
  const int64_t one[1] = {1};
  OpCall call(FLHAL_OP_INDEX_SELECT, f.result().scalar_type());
  call.out(f.result());
  call.in(x);
  if (index.dim() == 0) call.in_as(index, one, one);
  else call.in(index);
  call.attr(FLHAL_ATTR_INDEX_SELECT_DIM, at::maybe_wrap_dim(f.args[1].toInt(), x.dim()));
  return f.submit(call);
}

// gather(self, dim, index, sparse_grad)
bool gather(Frame& f) {
  const at::Tensor &x = f.tensor(0), &index = f.tensor(2);
  if (f.result().numel() == 0) return true;
  if (x.dim() == 0 || index.dim() != x.dim()) return f.decline("gather of a number");
  OpCall call(FLHAL_OP_GATHER, f.result().scalar_type());
  call.out(f.result());
  call.in(x);
  call.in(index);
  call.attr(FLHAL_ATTR_GATHER_DIM, at::maybe_wrap_dim(f.args[1].toInt(), x.dim()));
  return f.submit(call);
}

// scatter.src, scatter.value, scatter_add (self, dim, index, src | value)
bool scatter(Frame& f) {
  const at::Tensor &self = f.tensor(0), &index = f.tensor(2);
  if (self.dim() == 0 || index.dim() != self.dim()) return f.decline("scatter into a number");
  if (f.entry.form == Form::kOut && !f.result().is_same(self)) return f.decline("scatter with out=");
  if (f.result().numel() == 0) return true;
  if (!start_from_self(f)) return false;
  if (index.numel() == 0) return true;
  OpCall call(f.op(), f.result().scalar_type());
  call.out(f.result());
  call.in(index);
  c10::SmallVector<int64_t, 8> still(index.dim(), 0);
  at::Tensor value;
  if (f.is_tensor(3)) {
    call.in(f.tensor(3));
  } else {                                   // one element, seen at every place
    value = f.temporary({1}, self.scalar_type());
    OpCall fill(FLHAL_OP_FILL, self.scalar_type());
    fill.out(value);
    add_stored_number(f, fill, 3, self.scalar_type());
    if (!f.submit(fill)) return false;
    call.in_as(value, index.sizes(), still);
  }
  call.attr(f.op() == FLHAL_OP_SCATTER ? FLHAL_ATTR_SCATTER_DIM : FLHAL_ATTR_SCATTER_ADD_DIM,
            at::maybe_wrap_dim(f.args[1].toInt(), self.dim()));
  return f.submit(call);
}

// index_add(self, dim, index, source, alpha)
bool index_add(Frame& f) {
  const at::Tensor &self = f.tensor(0), &index = f.tensor(2);
  at::Tensor source = f.tensor(3);
  if (self.dim() == 0 || index.dim() != 1 || source.dim() != self.dim()) return f.decline("index_add of numbers");
  if (f.entry.form == Form::kOut && !f.result().is_same(self)) return f.decline("index_add with out=");
  c10::Scalar alpha = f.args[4].toScalar();
  if (f.result().numel() == 0) return true;
  if (!start_from_self(f)) return false;
  if (source.numel() == 0) return true;
  if (alpha.isComplex() || alpha.toDouble() != 1.0) {
    at::Tensor scaled = f.temporary(source.sizes(), source.scalar_type());
    OpCall mul(FLHAL_OP_MUL, source.scalar_type());
    mul.out(scaled);
    mul.in(source);
    mul.in_scalar(alpha, source.scalar_type());
    if (!f.submit(mul)) return false;
    source = scaled;
  }
  OpCall call(FLHAL_OP_INDEX_ADD, f.result().scalar_type());
  call.out(f.result());
  call.in(index);
  call.in(source);
  call.attr(FLHAL_ATTR_INDEX_ADD_DIM, at::maybe_wrap_dim(f.args[1].toInt(), self.dim()));
  return f.submit(call);
}

// cat(tensors, dim). Empty vectors are left out: torch lets them stand beside tensors of any rank.
bool cat(Frame& f) {
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  c10::SmallVector<flhal_tensor, 9> operands(1);
  OpCall::describe(out.unsafeGetTensorImpl(), &operands[0]);
  bool known = operands[0].dtype != 0;
  std::vector<at::Tensor> kept = f.args[0].toTensorVector();
  for (const at::Tensor& t : kept) {
    if (t.numel() == 0) continue;
    operands.emplace_back();
    OpCall::describe(t.unsafeGetTensorImpl(), &operands.back());
    known &= operands.back().dtype != 0;
  }
  if (!known) return f.decline("dtype unknown to flhal");
  const uint32_t n = static_cast<uint32_t>(operands.size() - 1), groups[2] = {1, n};
  OpCall call(FLHAL_OP_CAT, out.scalar_type());
  call.operands(operands.data(), 1, n);
  call.groups(groups, 2);
  call.attr(FLHAL_ATTR_CAT_DIM, at::maybe_wrap_dim(f.args[1].toInt(), out.dim()));
  return f.submit(call);
}

// tril, triu (self, diagonal)
bool triangle(Frame& f) {
  if (f.result().numel() == 0) return true;
  OpCall call(f.op(), f.result().scalar_type());
  call.out(f.result());
  call.in(f.tensor(0));
  call.attr(f.op() == FLHAL_OP_TRIL ? FLHAL_ATTR_TRIL_DIAGONAL : FLHAL_ATTR_TRIU_DIAGONAL, f.args[1].toInt());
  return f.submit(call);
}

// arange.start_out(start, end, step, out)
bool arange(Frame& f) {
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  c10::Scalar start = f.args[0].toScalar(), step = f.args[2].toScalar();
  OpCall call(FLHAL_OP_ARANGE, out.scalar_type());
  call.out(out);
  if (c10::isIntegralType(out.scalar_type(), true)) {
    call.attr(FLHAL_ATTR_ARANGE_START, start.toLong(), true);
    call.attr(FLHAL_ATTR_ARANGE_STEP, step.toLong(), true);
  } else {
    call.attr(FLHAL_ATTR_ARANGE_START, start.toDouble(), true);
    call.attr(FLHAL_ATTR_ARANGE_STEP, step.toDouble(), true);
  }
  return f.submit(call);
}

}  // namespace torch_fl
