// src/kernels/plan_pointwise.cc: plans of all operators that have a row in exprs.def.
//
// Idea: the operator picks a row, the compute dtype a column; the order of kernel operands may differ from the call's
// (masked_fill is `where` with its operands turned). arguments() only works out the geometry and the attributes.
#include <new>

#include "kernels/families.h"
#include "kernels/pointwise_geometry.h"

namespace flhal::kernels {
namespace {

struct ExprInfo { const char* cls; uint8_t arity, cost; };
constexpr ExprInfo kExprInfo[kExprs] = {
#define EXPR(name, cls, arity, cost, text) {#cls, arity, cost},
#define EXPR_SCALED(name, plain, scaled) {"ALL", 2, 1},
#include "kernels/exprs.def"
#undef EXPR
#undef EXPR_SCALED
};

struct PointwisePlan final : KernelPlan {
  uint8_t order[3] = {1, 2, 3};     // call operand of each kernel input
  uint32_t n_operands = 0;
  Kind native[kMaxPointwise] = {};
  uint64_t chunk = 0;
  uint32_t alpha_key = 0;           // a dynamic attribute for p0, or 0
  DenseForm dense_form = {};        // its pf, pi are the static attributes, also of other calls
  bool has_dense = false;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) PointwiseParams;   // default initialised: nothing is written
    const Tensor* operands[kMaxPointwise];
    operands[0] = &tensor_of(call, 0);
    for (uint32_t k = 1; k < n_operands; ++k) operands[k] = &tensor_of(call, order[k - 1]);
    pointwise_geometry(operands, n_operands, native, *p);
    p->chunk = chunk;
    p->error = out.error;
    const DenseParams& fixed = dense_form.params;
    for (int i = 0; i < 4; ++i) { p->pf[i] = fixed.pf[i]; p->pi[i] = fixed.pi[i]; }
    if (alpha_key != 0) {
      if (const auto* a = find_attr(call, alpha_key)) {
        p->pf[0] = a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
        p->pi[0] = a->kind == FLHAL_ATTR_INT ? a->v.i : static_cast<int64_t>(a->v.f);
        p->pf[3] = a->kind == FLHAL_ATTR_COMPLEX ? a->imag : 0.0;
      }
    }
    out.groups[0] = p->n <= chunk ? 1 : (p->n + chunk - 1) / chunk;
    add_value(out, pointwise_bytes(*p));
    add_memory(out, call, 0);
    for (uint32_t k = 1; k < n_operands; ++k) add_operand(out, call, order[k - 1]);
  }
  const DenseForm* dense() const override { return has_dense ? &dense_form : nullptr; }

  // Kernels that convert, or tell of faults, go the general way. `kind`: of every operand, should they be alike.
  void make_dense(Kind kind) {
    has_dense = !can_fail;
    for (uint32_t k = 0; k < n_operands; ++k) has_dense &= native[k] == kind;
    DenseParams& p = dense_form.params;
    p.chunk = chunk;
    p.n_dims = 1;
    p.n_operands = n_operands;
    p.direct = 1;
    p.linear = 0xff;
    for (uint32_t k = 0; k < n_operands; ++k) {
      p.kind[k] = kind;
      p.dims[0].stride[k] = kKindBytes[kind];
    }
    for (uint32_t k = 1; k < n_operands; ++k) dense_form.operand[k] = order[k - 1];
  }
};

struct Choice {
  int expr = -1;
  uint8_t order[3] = {1, 2, 3};
  uint32_t alpha_key = 0;
  uint32_t attr[3] = {0, 0, 0};          // static attributes for p0, p1, p2
  double otherwise[3] = {0, 0, 0};
};

Choice choose(const Call& call) {
  Choice c;
  switch (call.op) {
#define PLAIN(OP, expr_) case FLHAL_OP_##OP: c.expr = kExpr_##expr_; break;
    PLAIN(NEG, neg) PLAIN(ABS, abs) PLAIN(SIGN, sign) PLAIN(EXP, exp) PLAIN(EXP2, exp2) PLAIN(EXPM1, expm1)
    PLAIN(LOG, log) PLAIN(LOG2, log2) PLAIN(LOG10, log10) PLAIN(LOG1P, log1p) PLAIN(SQRT, sqrt) PLAIN(RSQRT, rsqrt)
    PLAIN(RECIPROCAL, reciprocal) PLAIN(SQUARE, square) PLAIN(SIN, sin) PLAIN(COS, cos) PLAIN(TAN, tan)
    PLAIN(ASIN, asin) PLAIN(ACOS, acos) PLAIN(ATAN, atan) PLAIN(SINH, sinh) PLAIN(COSH, cosh) PLAIN(TANH, tanh)
    PLAIN(SIGMOID, sigmoid) PLAIN(RELU, relu) PLAIN(SILU, silu) PLAIN(ERF, erf) PLAIN(ERFC, erfc) PLAIN(FLOOR, floor)
    PLAIN(CEIL, ceil) PLAIN(ROUND, round) PLAIN(TRUNC, trunc) PLAIN(FRAC, frac) PLAIN(ISNAN, isnan) PLAIN(ISINF, isinf)
    PLAIN(ISFINITE, isfinite) PLAIN(LOGICAL_NOT, logical_not) PLAIN(BITWISE_NOT, bitwise_not)
    PLAIN(MUL, mul) PLAIN(DIV, div) PLAIN(DIV_FLOOR, div_floor) PLAIN(DIV_TRUNC, div_trunc) PLAIN(REMAINDER, remainder)
    PLAIN(FMOD, fmod) PLAIN(POW, pow) PLAIN(MAXIMUM, maximum) PLAIN(MINIMUM, minimum) PLAIN(ATAN2, atan2)
    PLAIN(EQ, eq) PLAIN(NE, ne) PLAIN(LT, lt) PLAIN(LE, le) PLAIN(GT, gt) PLAIN(GE, ge)
    PLAIN(LOGICAL_AND, logical_and) PLAIN(LOGICAL_OR, logical_or) PLAIN(LOGICAL_XOR, logical_xor)
    PLAIN(BITWISE_AND, bitwise_and) PLAIN(BITWISE_OR, bitwise_or) PLAIN(BITWISE_XOR, bitwise_xor)
    PLAIN(SHIFT_LEFT, shift_left) PLAIN(SHIFT_RIGHT, shift_right)
    PLAIN(TANH_BACKWARD, tanh_backward) PLAIN(SIGMOID_BACKWARD, sigmoid_backward) PLAIN(SILU_BACKWARD, silu_backward)
    PLAIN(WHERE, where) PLAIN(LERP, lerp)
#undef PLAIN
    case FLHAL_OP_ADD: c.expr = kExpr_add; c.alpha_key = FLHAL_ATTR_ADD_ALPHA; break;
    case FLHAL_OP_SUB: c.expr = kExpr_sub; c.alpha_key = FLHAL_ATTR_SUB_ALPHA; break;
    case FLHAL_OP_ADDCMUL: c.expr = kExpr_addcmul; c.alpha_key = FLHAL_ATTR_ADDCMUL_VALUE; break;
    case FLHAL_OP_ADDCDIV: c.expr = kExpr_addcdiv; c.alpha_key = FLHAL_ATTR_ADDCDIV_VALUE; break;
    case FLHAL_OP_GELU:
      c.expr = attr_int(call, FLHAL_ATTR_GELU_APPROXIMATE, 0) ? kExpr_gelu_tanh : kExpr_gelu;
      break;
    case FLHAL_OP_GELU_BACKWARD:
      c.expr = attr_int(call, FLHAL_ATTR_GELU_BACKWARD_APPROXIMATE, 0) ? kExpr_gelu_tanh_backward : kExpr_gelu_backward;
      break;
    case FLHAL_OP_SOFTPLUS:
      c = {kExpr_softplus, {1, 2, 3}, 0, {FLHAL_ATTR_SOFTPLUS_BETA, FLHAL_ATTR_SOFTPLUS_THRESHOLD, 0}, {1, 20, 0}};
      break;
    case FLHAL_OP_LEAKY_RELU:
      c = {kExpr_leaky_relu, {1, 2, 3}, 0, {FLHAL_ATTR_LEAKY_RELU_SLOPE, 0, 0}, {0.01, 0, 0}};
      break;
    case FLHAL_OP_HARDTANH:
      c = {kExpr_hardtanh, {1, 2, 3}, 0, {FLHAL_ATTR_HARDTANH_MIN, FLHAL_ATTR_HARDTANH_MAX, 0}, {-1, 1, 0}};
      break;
    case FLHAL_OP_ELU:
      c = {kExpr_elu, {1, 2, 3}, 0, {FLHAL_ATTR_ELU_ALPHA, FLHAL_ATTR_ELU_SCALE, FLHAL_ATTR_ELU_INPUT_SCALE}, {1, 1, 1}};
      break;
    case FLHAL_OP_RELU_BACKWARD:
      c = {kExpr_relu_backward, {1, 2, 3}, 0, {FLHAL_ATTR_RELU_BACKWARD_THRESHOLD, 0, 0}, {0, 0, 0}};
      break;
    case FLHAL_OP_MASKED_FILL:               // x, mask, value -> mask ? value : x
      c = {kExpr_where, {2, 3, 1}, 0, {0, 0, 0}, {0, 0, 0}};
      break;
    case FLHAL_OP_CLAMP:
      if (given(call, 2) && given(call, 3)) c.expr = kExpr_clamp;
      else if (given(call, 2)) c.expr = kExpr_maximum;
      else if (given(call, 3)) c = {kExpr_minimum, {1, 3, 2}, 0, {0, 0, 0}, {0, 0, 0}};
      else c.expr = kExpr_copy;
      break;
    default: break;
  }
  return c;
}

}  // namespace

PlanPtr plan_pointwise(const Call& proto, const char** reason) {
  Choice c = choose(proto);
  if (c.expr < 0) { *reason = "no portable kernel for this operator"; return nullptr; }
  const uint32_t arity = kExprInfo[c.expr].arity;
  const char* cls = kExprInfo[c.expr].cls;
  const bool test = cls[0] == 'C', select = cls[0] == 'S';   // CMP, CMPA; SEL

  uint32_t first_value = select ? c.order[1] : c.order[0];
  flhal_dtype dtype = proto.compute_dtype != 0 ? proto.compute_dtype : tensor_of(proto, first_value).dtype;
  Kind kind = kind_of(dtype);
  if (kind == kKinds) { *reason = "the portable kernels do not compute in this dtype"; return nullptr; }
  Compute compute = compute_of(kind);
  bool all_bool = kind == kBool;
  bool all_i32 = compute == kCI32;
  for (uint32_t k = 0; k < arity; ++k) {
    const Tensor& t = tensor_of(proto, c.order[k]);
    if (absent(t) || kind_of(t.dtype) == kKinds) { *reason = "the portable kernels do not read this dtype"; return nullptr; }
    if (select && k == 0) continue;
    all_bool &= t.dtype == FLHAL_BOOL;
    all_i32 &= t.dtype == FLHAL_I32 || t.rank == 0;
  }
  const Tensor& out = tensor_of(proto, 0);
  if (kind_of(out.dtype) == kKinds) { *reason = "the portable kernels do not write this dtype"; return nullptr; }
  if (out.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  if (kind == kBool) {   // ~ on bool is logical; & | ^ of 0 and 1 are the logical ones; the rest counts in int64
    if (c.expr == kExpr_bitwise_not) c.expr = kExpr_logical_not;
    if (c.expr == kExpr_bitwise_and) c.expr = kExpr_logical_and;
    if (c.expr == kExpr_bitwise_or) c.expr = kExpr_logical_or;
    if (c.expr == kExpr_bitwise_xor) c.expr = kExpr_logical_xor;
    cls = kExprInfo[c.expr].cls;
  }
  const bool tests = test || cls[0] == 'C';
  if (kind == kU64 && (tests || c.expr == kExpr_div_floor || c.expr == kExpr_div_trunc || c.expr == kExpr_remainder ||
                       c.expr == kExpr_fmod || c.expr == kExpr_maximum || c.expr == kExpr_minimum ||
                       c.expr == kExpr_shift_right || c.expr == kExpr_pow || c.expr == kExpr_clamp)) {
    if (c.expr != kExpr_eq && c.expr != kExpr_ne && c.expr != kExpr_logical_not) {
      *reason = "uint64 is computed as int64 here, and this operator depends on the sign";
      return nullptr;
    }
  }
  if (all_bool && level().pointwise[kCBool][c.expr] != nullptr) compute = kCBool;
  else if (compute == kCI32 && !all_i32) compute = kCI64;
  flhal_host_kernel run = level().pointwise[compute][c.expr];
  if (run == nullptr) { *reason = "the operator does not exist for this compute dtype"; return nullptr; }

  auto plan = std::make_unique<PointwisePlan>();
  plan->host = run;
  plan->function = function_name(run);
  plan->n_operands = arity + 1;
  for (int i = 0; i < 3; ++i) plan->order[i] = c.order[i];
  plan->native[0] = tests ? kBool : kComputeKind[compute];
  for (uint32_t k = 0; k < arity; ++k) plan->native[k + 1] = select && k == 0 ? kBool : kComputeKind[compute];
  plan->chunk = 16384 / kExprInfo[c.expr].cost < 2048 ? 2048 : 16384 / kExprInfo[c.expr].cost;
  plan->alpha_key = c.alpha_key;
  DenseParams& fixed = plan->dense_form.params;
  for (int i = 0; i < 3; ++i) {
    double v = c.attr[i] ? attr_float(proto, c.attr[i], c.otherwise[i]) : 0.0;
    fixed.pf[i] = v;
    fixed.pi[i] = c.attr[i] ? attr_int(proto, c.attr[i], static_cast<int64_t>(c.otherwise[i])) : 0;
  }
  if (c.alpha_key != 0) { fixed.pf[0] = 1; fixed.pi[0] = 1; }
  plan->can_fail = (compute == kCI64 || compute == kCI32) &&
                   (c.expr == kExpr_div_floor || c.expr == kExpr_div_trunc || c.expr == kExpr_remainder || c.expr == kExpr_fmod);
  plan->make_dense(kind_of(out.dtype));
  return plan;
}

}  // namespace flhal::kernels
