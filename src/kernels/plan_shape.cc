// src/kernels/plan_shape.cc: cat, tril, triu, cumsum.
#include <new>

#include "kernels/families.h"
#include "kernels/pointwise_geometry.h"
#include "kernels/rows_geometry.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kChunk = 16384;

// Inputs of any dtype, side by side in the output.
struct CatPlan final : KernelPlan {
  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* c = new (out.values) CatParams;
    const Tensor& y = tensor_of(call, 0);
    const int64_t y_bytes = kKindBytes[kind_of(y.dtype)];
    const uint32_t dim = static_cast<uint32_t>(attr_dim(call, FLHAL_ATTR_CAT_DIM, 0, y.rank));
    c->n_inputs = call.n_inputs;
    c->converts = 0;
    c->groups_before[0] = 0;
    uint32_t used = (sizeof(CatParams) + 15u) & ~15u;
    int64_t start = 0;
    for (uint32_t i = 0; i < call.n_inputs; ++i) {
      const Tensor& x = tensor_of(call, 1 + i);
      auto* p = new (out.values + used) PointwiseParams;
      const Kind from = kind_of(x.dtype), to = kind_of(y.dtype);
      // The part of the output that this input fills has the input's sizes.
      Tensor part = y;
      int64_t sizes[kMaxRank];
      const bool empty = x.rank != y.rank;           // PyTorch lets an empty vector through
      for (uint32_t d = 0; d < y.rank; ++d) sizes[d] = empty ? 0 : x.sizes[d];
      part.sizes = sizes;
      Kind native[2] = {to, from};
      if (from != to) {
        c->converts |= 1ull << i;
        Compute via = from == kBool || compute_of(from) == kCI32 ? kCI64 : compute_of(from);
        native[0] = native[1] = kComputeKind[via];
      }
      const Tensor* operands[2] = {&part, empty ? &part : &x};
      pointwise_geometry(operands, 2, native, *p);
      p->chunk = kChunk;
      p->error = nullptr;
      for (int k = 0; k < 4; ++k) { p->pf[k] = 0; p->pi[k] = 0; }
      p->pi[3] = y.rank ? start * y.strides[dim] * y_bytes : 0;
      c->offset[i] = used;
      used += (pointwise_bytes(*p) + 15u) & ~15u;
      c->groups_before[i + 1] = c->groups_before[i] + (p->n + kChunk - 1) / kChunk;
      start += empty ? 0 : x.sizes[dim];
    }
    out.groups[0] = c->groups_before[call.n_inputs] ? c->groups_before[call.n_inputs] : 1;
    add_value(out, used);
    add_memory(out, call, 0);
    for (uint32_t i = 0; i < call.n_inputs; ++i) add_operand(out, call, 1 + i);
  }
};

struct TrianglePlan final : KernelPlan {
  int64_t diagonal = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) PointwiseParams;
    const Tensor& y = tensor_of(call, 0);
    const Tensor& x = tensor_of(call, 1);
    const int64_t bytes = kKindBytes[kind_of(y.dtype)];
    p->n = element_count(y);
    p->n_dims = y.rank;
    p->n_operands = 2;
    p->pi[0] = diagonal;
    for (uint32_t d = 0; d < y.rank; ++d) {
      const uint32_t from = y.rank - 1 - d;
      p->dims[d] = {y.sizes[from], {y.strides[from] * bytes, x.strides[from] * bytes, 0, 0}};
    }
    const uint64_t columns = static_cast<uint64_t>(p->dims[0].size), rows = columns ? p->n / columns : 0;
    p->chunk = columns >= kChunk || columns == 0 ? 1 : kChunk / columns;
    out.groups[0] = rows <= p->chunk ? 1 : (rows + p->chunk - 1) / p->chunk;
    add_value(out, pointwise_bytes(*p));
    add_memory(out, call, 0);
    add_operand(out, call, 1);
  }
};

struct CumsumPlan final : KernelPlan {
  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) RowsParams;
    const Tensor& x = tensor_of(call, 1);
    const Tensor* operands[2] = {&tensor_of(call, 0), &x};
    RowsRule rule;
    rule.lead = 1;
    rule.keep_inner_order = true;
    rule.inner_mask = 1u << attr_dim(call, FLHAL_ATTR_CUMSUM_DIM, 0, x.rank);
    rows_geometry(x, operands, 2, rule, *p);
    out.groups[0] = rows_groups(*p, kChunk);
    add_value(out, rows_bytes(*p));
    add_memory(out, call, 0);
    add_operand(out, call, 1);
  }
};

}  // namespace

PlanPtr plan_shape(const Call& proto, const char** reason) {
  for (uint32_t i = 0; i < tensor_count(proto); ++i) {
    const Tensor& t = tensor_of(proto, i);
    if (kind_of(t.dtype) == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
    if (t.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  }
  const Tensor& y = tensor_of(proto, 0);
  const Kind kind = kind_of(y.dtype);
  std::unique_ptr<KernelPlan> plan;
  int which;
  if (proto.op == FLHAL_OP_CAT) {
    const uint64_t each = ((__builtin_offsetof(PointwiseParams, dims) + y.rank * sizeof(PointwiseDim)) + 31u) & ~15ull;
    if (proto.n_inputs > 60 || sizeof(CatParams) + 16 + proto.n_inputs * each > sizeof(LaunchArgs::values)) {
      *reason = "cat of so many inputs of this rank in one call";
      return nullptr;
    }
    plan = std::make_unique<CatPlan>();
    which = kNamed_cat_any;
  } else if (proto.op == FLHAL_OP_CUMSUM) {
    plan = std::make_unique<CumsumPlan>();
    Compute compute = compute_of(kind);
    which = compute == kCF32 || compute == kCF64 ? kNamed_cumsum_f64 : compute == kCC128 ? kNamed_cumsum_c128 : kNamed_cumsum_i64;
  } else {
    const Tensor& x = tensor_of(proto, 1);
    if (y.rank < 2) { *reason = "tril and triu need rank 2 or more"; return nullptr; }
    if (x.dtype != y.dtype) { *reason = "tril and triu do not convert"; return nullptr; }
    auto made = std::make_unique<TrianglePlan>();
    const bool lower = proto.op == FLHAL_OP_TRIL;
    made->diagonal = attr_int(proto, lower ? FLHAL_ATTR_TRIL_DIAGONAL : FLHAL_ATTR_TRIU_DIAGONAL, 0);
    which = (lower ? kNamed_tril_1 : kNamed_triu_1) + __builtin_ctz(kKindBytes[kind]);
    plan = std::move(made);
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
