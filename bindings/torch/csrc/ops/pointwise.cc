// csrc/ops/pointwise.cc: one result element from one element of each operand; broadcasting and conversion happen in flhal.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>

#include <limits>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

bool run_pointwise(Frame& f, uint32_t op, bool swapped) {
  const at::Tensor& out = f.result();
  TORCH_CHECK(op != FLHAL_OP_RELU || f.compute != at::kBool, "Boolean inputs not supported for relu");
  if (out.numel() == 0) return true;
  OpCall call(op, arithmetic_type(f));
  call.out(out);
  uint32_t order[2] = {swapped ? 1u : 0u, swapped ? 0u : 1u};
  for (uint32_t i = 0; i < f.n_inputs(); ++i) {
    uint32_t which = i < 2 ? order[i] : i;
    if (which < f.n_inputs() && f.entry.args[which].attr == nullptr && !f.args[which].isString()) add_operand(f, call, which);
  }
  add_attrs(f, call);
  return f.submit(call);
}

}  // namespace

bool pointwise(Frame& f) { return run_pointwise(f, f.op(), false); }

// rsub: the CPU refuses what its sub refuses; PyTorch's Meta kernel lets it through.
bool pointwise_swapped(Frame& f) {
  TORCH_CHECK(f.tensor(0).scalar_type() != at::kBool && f.tensor(1).scalar_type() != at::kBool,
              "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
              "`logical_not()` operator instead.");
  return run_pointwise(f, f.op(), true);
}

// masked_fill(self, mask, value)
bool masked_fill(Frame& f) {
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  if (at::has_internal_overlap(out) != at::MemOverlap::No) return f.decline("the result overlaps itself");
  OpCall call(f.op(), f.compute);
  call.out(out);
  call.in(f.tensor(0));
  call.in(f.tensor(1));
  add_stored_number(f, call, 2, f.compute);
  return f.submit(call);
}

// rounding_mode chooses the op.
bool div_mode(Frame& f) {
  const c10::IValue& mode = f.args[2];
  uint32_t op = mode.isNone() ? FLHAL_OP_DIV : mode.toStringRef() == "floor" ? FLHAL_OP_DIV_FLOOR : FLHAL_OP_DIV_TRUNC;
  if (f.result().numel() == 0) return true;
  // Of half types the CPU rounds the quotient before it cuts it, but for one number as divisor: -32.94 is -33 in bfloat16.
  const bool rounded = op == FLHAL_OP_DIV_TRUNC && c10::isReducedFloatingType(f.compute) && f.is_tensor(1) && f.tensor(1).numel() != 1;
  const at::Tensor quotient = rounded ? f.temporary(f.result().sizes(), f.compute) : f.result();
  OpCall call(rounded ? FLHAL_OP_DIV : op, arithmetic_type(f));
  call.out(quotient);
  add_operand(f, call, 0);
  add_operand(f, call, 1);
  if (!f.submit(call)) return false;
  if (!rounded) return true;
  OpCall cut(FLHAL_OP_TRUNC, f.compute);
  cut.out(f.result());
  cut.in(quotient);
  return f.submit(cut);
}

// isposinf, isneginf: equal to that infinity. Integers have none.
bool infinity_of_sign(Frame& f) {
  if (f.result().numel() == 0) return true;
  const bool negative = f.entry.name.find("isneginf") != std::string::npos;
  if (c10::isIntegralType(f.compute, true)) {
    OpCall none(FLHAL_OP_FILL, f.result().scalar_type());
    none.out(f.result());
    none.in_scalar(c10::Scalar(false), f.result().scalar_type());
    return f.submit(none);
  }
  OpCall call(FLHAL_OP_EQ, f.compute);
  call.out(f.result());
  call.in(f.tensor(0));
  call.in_scalar(c10::Scalar(negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()), f.compute);
  return f.submit(call);
}

// clamp without its upper bound, and without its lower one.
bool clamp_min(Frame& f) {
  if (f.result().numel() == 0) return true;
  OpCall call(FLHAL_OP_CLAMP, f.compute);
  call.out(f.result());
  add_operand(f, call, 0);
  add_operand(f, call, 1);
  call.in_absent();
  return f.submit(call);
}
bool clamp_max(Frame& f) {
  if (f.result().numel() == 0) return true;
  OpCall call(FLHAL_OP_CLAMP, f.compute);
  call.out(f.result());
  add_operand(f, call, 0);
  call.in_absent();
  add_operand(f, call, 1);
  return f.submit(call);
}

// The exponents that the CPU also treats by cheaper exact formulas.
bool pow_any(Frame& f) {
  const c10::IValue& e = f.args[1];
  if (f.result().numel() == 0) return true;
  if (e.isScalar() && !e.toScalar().isComplex()) {
    double x = e.toScalar().toDouble();
    uint32_t op = x == 2.0 ? FLHAL_OP_SQUARE : 0u;
    if (c10::isFloatingType(f.compute)) {
      const bool roots = f.compute != at::kHalf;      // there the CPU asks pow, whose answers for -0 and -inf are others
      if (x == 0.5 && roots) op = FLHAL_OP_SQRT;
      if (x == -0.5 && roots) op = FLHAL_OP_RSQRT;
      if (x == -1.0) op = FLHAL_OP_RECIPROCAL;
    }
    if (x == 1.0) op = FLHAL_OP_COPY;
    if (op != 0) {
      OpCall call(op, f.compute);
      call.out(f.result());
      call.in(f.tensor(0));
      return f.submit(call);
    }
  }
  return run_pointwise(f, FLHAL_OP_POW, false);
}

}  // namespace torch_fl
