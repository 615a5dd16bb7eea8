// csrc/ops/loss.cc: the negative log likelihood of classes, and its gradient.
//
// Idea: made of rows that every chip has (gather, where, sum, scatter), so it needs no kernel of its own. A target that is
// ignored is replaced by class 0 before anything is read and by 0 after: what lies there (an infinity, a NaN) never
// takes part. Formula: torch.nn.NLLLoss.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

constexpr int64_t kOne[1] = {1};

// What forward and backward share: per row the class that is read, and its weight.
struct Rows {
  int64_t n, n_classes;
  at::Tensor valid, chosen, weights;   // bool, int64, the type of self; weights undefined without class weights: all 1
};

bool run(Frame& f, uint32_t op, const at::Tensor& out, c10::ScalarType type, const at::Tensor& a, const at::Tensor& b = {}) {
  OpCall call(op, type);
  call.out(out);
  call.in(a);
  if (b.defined()) call.in(b);
  return f.submit(call);
}

// out = valid ? x : 0
bool keep_valid(Frame& f, const at::Tensor& out, const Rows& rows, const at::Tensor& x) {
  OpCall call(FLHAL_OP_WHERE, out.scalar_type());
  call.out(out);
  call.in(rows.valid);
  call.in(x);
  call.in_scalar(0, out.scalar_type());
  return f.submit(call);
}

bool read_rows(Frame& f, const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight, int64_t ignored, Rows* rows) {
  if (target.scalar_type() != at::kLong) return f.decline("class targets that are not int64");
  const int64_t n = rows->n = self.dim() == 2 ? self.size(0) : 1;
  rows->n_classes = self.size(-1);
  if (n == 0 || rows->n_classes == 0) return f.decline("a loss over no row or no class");
  const int64_t sizes[1] = {n}, strides[1] = {target.dim() == 1 ? target.stride(0) : 1};
  rows->valid = f.temporary(sizes, at::kBool);
  rows->chosen = f.temporary(sizes, at::kLong);
  OpCall differs(FLHAL_OP_NE, at::kLong);
  differs.out(rows->valid);
  differs.in_as(target, sizes, strides);
  differs.in_scalar(ignored, at::kLong);
  OpCall choose(FLHAL_OP_WHERE, at::kLong);
  choose.out(rows->chosen);
  choose.in(rows->valid);
  choose.in_as(target, sizes, strides);
  choose.in_scalar(int64_t{0}, at::kLong);
  if (!f.submit(differs) || !f.submit(choose)) return false;
  if (!weight.defined()) return true;
  rows->weights = f.temporary(sizes, self.scalar_type());
  OpCall read(FLHAL_OP_INDEX_SELECT, self.scalar_type());
  read.out(rows->weights);
  read.in(weight);
  read.in(rows->chosen);
  read.attr(FLHAL_ATTR_INDEX_SELECT_DIM, int64_t{0});
  return f.submit(read);
}

// Only the kernel sees the classes. What it finds is an IndexError here, as on the CPU, and a RuntimeError of gather elsewhere.
bool pick_classes(Frame& f, const OpCall& pick) {
  try {
    return f.submit(pick);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    TORCH_CHECK_INDEX(text.find("out of range") == std::string::npos, "nll_loss: a target names no class: ", text);
    throw;
  }
}

bool sum_into(Frame& f, const at::Tensor& out, const at::Tensor& x) {   // out has one element
  OpCall call(FLHAL_OP_SUM, out.scalar_type());
  call.out_as(out, kOne, kOne);
  call.in(x);
  return f.submit(call);
}

}  // namespace

// nll_loss_forward(self, target, weight?, reduction, ignore_index) -> (output, total_weight)
bool nll_loss(Frame& f) {
  if (!f.fresh_results()) return f.decline("nll_loss with out=");
  const at::Tensor &self = f.tensor(0), &out = f.result(0), &total = f.result(1);
  const c10::ScalarType type = self.scalar_type();
  const int64_t reduction = f.args[3].toInt();
  Rows rows;
  if (!read_rows(f, self, f.tensor(1), f.tensor(2), f.args[4].toInt(), &rows)) return false;
  const int64_t column[2] = {rows.n, 1}, dense[2] = {1, 1}, whole[2] = {rows.n, rows.n_classes};
  const int64_t strides[2] = {self.dim() == 2 ? self.stride(0) : 0, self.stride(-1)};
  const int64_t sizes[1] = {rows.n};
  at::Tensor picked = f.temporary(sizes, type), loss = f.temporary(sizes, type);
  OpCall pick(FLHAL_OP_GATHER, type);
  pick.out_as(picked, column, dense);
  pick.in_as(self, whole, strides);
  pick.in_as(rows.chosen, column, dense);
  pick.attr(FLHAL_ATTR_GATHER_DIM, int64_t{1});
  if (!pick_classes(f, pick) || !run(f, FLHAL_OP_NEG, picked, type, picked)) return false;
  if (rows.weights.defined() && !run(f, FLHAL_OP_MUL, picked, type, picked, rows.weights)) return false;
  const bool each = reduction == at::Reduction::None && self.dim() == 2;
  if (!keep_valid(f, each ? out : loss, rows, picked)) return false;
  if (each) return f.fill(total, 0);
  at::Tensor counted = f.temporary(sizes, type);
  at::Tensor ones = rows.weights;
  if (!ones.defined()) {
    ones = f.temporary(sizes, type);
    if (!f.fill(ones, 1)) return false;
  }
  if (!keep_valid(f, counted, rows, ones) || !sum_into(f, total, counted) || !sum_into(f, out, loss)) return false;
  return reduction != at::Reduction::Mean || run(f, FLHAL_OP_DIV, out, type, out, total);
}

// nll_loss_backward(grad_output, self, target, weight?, reduction, ignore_index, total_weight) -> grad_input
bool nll_loss_backward(Frame& f) {
  if (!f.fresh_results()) return f.decline("nll_loss_backward with out=");
  const at::Tensor &grad = f.tensor(0), &self = f.tensor(1), &out = f.result();
  const c10::ScalarType type = self.scalar_type();
  Rows rows;
  if (!read_rows(f, self, f.tensor(2), f.tensor(3), f.args[5].toInt(), &rows)) return false;
  const int64_t sizes[1] = {rows.n}, column[2] = {rows.n, 1}, dense[2] = {1, 1}, whole[2] = {rows.n, rows.n_classes};
  const int64_t strides[2] = {out.dim() == 2 ? out.stride(0) : 0, out.stride(-1)};
  at::Tensor scale = grad;
  if (f.args[4].toInt() == at::Reduction::Mean) {
    scale = f.temporary({}, type);
    if (!run(f, FLHAL_OP_DIV, scale, type, grad, f.tensor(6))) return false;
  }
  at::Tensor values = f.temporary(sizes, type);
  const int64_t step[1] = {scale.dim() == 1 && scale.size(0) != 1 ? scale.stride(0) : 0};   // one gradient for all rows, or each its own
  OpCall negate(FLHAL_OP_NEG, type);
  negate.out(values);
  negate.in_as(scale, sizes, step);
  if (!f.submit(negate)) return false;
  if (rows.weights.defined() && !run(f, FLHAL_OP_MUL, values, type, values, rows.weights)) return false;
  if (!keep_valid(f, values, rows, values) || !f.fill(out, 0)) return false;
  OpCall put(FLHAL_OP_SCATTER, type);
  put.out_as(out, whole, strides);
  put.in_as(rows.chosen, column, dense);
  put.in_as(values, column, dense);
  put.attr(FLHAL_ATTR_SCATTER_DIM, int64_t{1});
  return f.submit(put);
}

}  // namespace torch_fl
