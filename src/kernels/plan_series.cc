// src/kernels/plan_series.cc: arange and the random operators.
#include <new>

#include "kernels/families.h"
#include "kernels/pointwise_geometry.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kChunk = 4096;    // a multiple of 4: a Philox block lies in one group

struct SeriesPlan final : KernelPlan {
  uint32_t philox_key = 0, keys[2] = {0, 0};
  double otherwise[2] = {0, 1};

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* s = new (out.values) SeriesParams;
    for (uint32_t i = 0; i < 2; ++i) {
      s->f[i] = keys[i] ? attr_float(call, keys[i], otherwise[i]) : otherwise[i];
      s->i[i] = keys[i] ? attr_int(call, keys[i], static_cast<int64_t>(otherwise[i])) : static_cast<int64_t>(otherwise[i]);
    }
    s->seed = s->offset = 0;
    if (const auto* a = philox_key ? find_attr(call, philox_key) : nullptr) {
      s->seed = static_cast<const uint64_t*>(a->v.p)[0];
      s->offset = static_cast<const uint64_t*>(a->v.p)[1];
    }
    // Logical order: neighbours are merged, never sorted.
    const Tensor& y = tensor_of(call, 0);
    PointwiseParams& p = s->walk;
    p.kind[0] = kind_of(y.dtype);
    const int64_t bytes = kKindBytes[p.kind[0]];
    p.n = element_count(y);
    p.chunk = kChunk;
    p.n_operands = 1;
    p.n_dims = 0;
    for (uint32_t d = y.rank; d-- > 0;) {
      if (y.sizes[d] == 1) continue;
      PointwiseDim* last = p.n_dims ? &p.dims[p.n_dims - 1] : nullptr;
      if (last && y.strides[d] * bytes == last->size * last->stride[0]) last->size *= y.sizes[d];
      else p.dims[p.n_dims++] = {y.sizes[d], {y.strides[d] * bytes, 0, 0, 0}};
    }
    if (p.n_dims == 0) p.dims[p.n_dims++] = {1, {bytes, 0, 0, 0}};
    out.groups[0] = p.n <= kChunk ? 1 : (p.n + kChunk - 1) / kChunk;
    add_value(out, static_cast<uint32_t>(__builtin_offsetof(SeriesParams, walk)) + pointwise_bytes(p));
    add_memory(out, call, 0);
  }
};

}  // namespace

PlanPtr plan_series(const Call& proto, const char** reason) {
  const Tensor& y = tensor_of(proto, 0);
  const Kind kind = kind_of(y.dtype);
  if (kind == kKinds) { *reason = "the portable kernels do not write this dtype"; return nullptr; }
  if (y.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  const Compute compute = compute_of(kind);
  const bool is_float = compute == kCF32 || compute == kCF64;
  auto plan = std::make_unique<SeriesPlan>();
  Named which;
  switch (proto.op) {
    case FLHAL_OP_ARANGE:
      plan->keys[0] = FLHAL_ATTR_ARANGE_START;
      plan->keys[1] = FLHAL_ATTR_ARANGE_STEP;
      which = is_float ? kNamed_arange_f64 : kNamed_arange_i64;
      break;
    case FLHAL_OP_UNIFORM:
      plan->philox_key = FLHAL_ATTR_UNIFORM_PHILOX;
      plan->keys[0] = FLHAL_ATTR_UNIFORM_FROM;
      plan->keys[1] = FLHAL_ATTR_UNIFORM_TO;
      which = kind == kF64 ? kNamed_random_uniform_f64 : kNamed_random_uniform_f32;
      break;
    case FLHAL_OP_NORMAL:
      plan->philox_key = FLHAL_ATTR_NORMAL_PHILOX;
      plan->keys[0] = FLHAL_ATTR_NORMAL_MEAN;
      plan->keys[1] = FLHAL_ATTR_NORMAL_STD;
      which = kNamed_random_normal_f32;
      break;
    case FLHAL_OP_BERNOULLI:
      plan->philox_key = FLHAL_ATTR_BERNOULLI_PHILOX;
      plan->keys[0] = FLHAL_ATTR_BERNOULLI_P;
      plan->otherwise[0] = 0.5;
      which = kNamed_random_bernoulli_f32;
      break;
    default:
      plan->philox_key = FLHAL_ATTR_RANDINT_PHILOX;
      plan->keys[0] = FLHAL_ATTR_RANDINT_FROM;
      plan->keys[1] = FLHAL_ATTR_RANDINT_TO;
      which = kNamed_random_randint_i64;
  }
  if ((proto.op == FLHAL_OP_UNIFORM || proto.op == FLHAL_OP_NORMAL) && !is_float) {
    *reason = "uniform and normal exist for floating point only";
    return nullptr;
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
