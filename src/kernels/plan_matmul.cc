// src/kernels/plan_matmul.cc: plans of matmul: tiles, strides and batch dimensions.
#include <algorithm>
#include <new>

#include "kernels/families.h"

namespace flhal::kernels {
namespace {

// Row and column strides of the last two dimensions, and the batch strides before them; broadcasting is stride 0.
int64_t byte_stride(const Tensor& t, int32_t d) {
  return d < 0 || t.sizes[d] == 1 ? 0 : t.strides[d] * kKindBytes[kind_of(t.dtype)];
}

struct MatmulPlan final : KernelPlan {
  bool has_c = false, buffered = false;
  int64_t rows_max = 192;                // Tile::MB of the compute type

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) MatmulParams;
    const Tensor* t[4] = {&tensor_of(call, 0), &tensor_of(call, 1), &tensor_of(call, 2), has_c ? &tensor_of(call, 3) : nullptr};
    const uint32_t rank = t[0]->rank;
    p->m = t[0]->sizes[rank - 2];
    p->n = t[0]->sizes[rank - 1];
    p->k = t[1]->sizes[t[1]->rank - 1];
    p->alpha = p->beta = 1;
    p->alpha_int = p->beta_int = 1;
    if (const auto* a = find_attr(call, FLHAL_ATTR_MATMUL_ALPHA)) {
      p->alpha = a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
      p->alpha_int = a->kind == FLHAL_ATTR_INT ? a->v.i : static_cast<int64_t>(a->v.f);
    }
    if (const auto* a = find_attr(call, FLHAL_ATTR_MATMUL_BETA)) {
      p->beta = a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
      p->beta_int = a->kind == FLHAL_ATTR_INT ? a->v.i : static_cast<int64_t>(a->v.f);
    }
    p->has_c = has_c && p->beta != 0;        // beta 0: c is not looked at, so its NaN does not spread
    p->batches = 1;
    p->n_batch_dims = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      p->kind[k] = t[k] ? kind_of(t[k]->dtype) : kF32;
      const int32_t r = t[k] ? static_cast<int32_t>(t[k]->rank) : 0;
      p->row[k] = t[k] ? byte_stride(*t[k], r - 2) : 0;
      p->col[k] = t[k] ? byte_stride(*t[k], r - 1) : 0;
    }
    for (int32_t d = static_cast<int32_t>(rank) - 3; d >= 0; --d) {
      if (t[0]->sizes[d] == 1) continue;
      MatmulBatch& batch = p->batch[p->n_batch_dims++];
      batch.size = t[0]->sizes[d];
      p->batches *= batch.size;
      for (uint32_t k = 0; k < 4; ++k)
        batch.stride[k] = t[k] ? byte_stride(*t[k], d - static_cast<int32_t>(rank) + static_cast<int32_t>(t[k]->rank)) : 0;
    }
    // A matrix shared by the whole batch, times rows that continue into the batch, is one tall product (a Linear layer).
    if (p->n_batch_dims == 1 && p->batch[0].stride[kMatB] == 0) {
      bool joins = true;
      for (uint32_t k : {kMatOut, kMatA, kMatC})
        joins &= p->batch[0].stride[k] == p->row[k] * p->m || (k == kMatC && p->row[k] == 0 && p->batch[0].stride[k] == 0);
      if (joins) {
        p->m *= p->batch[0].size;
        p->batches = 1;
        p->n_batch_dims = 0;
      }
    }
    // The largest tiles that still give several groups; a tile of 192 rows packs into 192 KiB.
    p->tile_m = std::min<int64_t>(p->m, rows_max);
    p->tile_n = std::min<int64_t>(p->n, buffered ? 128 : 256);
    if (p->tile_m < 1) p->tile_m = 1;
    if (p->tile_n < 1) p->tile_n = 1;
    p->tiles_m = (p->m + p->tile_m - 1) / p->tile_m;
    p->tiles_n = (p->n + p->tile_n - 1) / p->tile_n;
    p->tile_m = p->tiles_m ? (p->m + p->tiles_m - 1) / p->tiles_m : 1;   // even sizes
    uint64_t groups = static_cast<uint64_t>(p->batches * p->tiles_m * p->tiles_n);
    out.groups[0] = groups ? groups : 1;
    add_value(out, static_cast<uint32_t>(__builtin_offsetof(MatmulParams, batch) + p->n_batch_dims * sizeof(MatmulBatch)));
    add_memory(out, call, 0);
    add_operand(out, call, 1);
    add_operand(out, call, 2);
    add_optional(out, call, 3);
  }
};

}  // namespace

PlanPtr plan_matmul(const Call& proto, const char** reason) {
  const Tensor& out = tensor_of(proto, 0);
  for (uint32_t i = 0; i < tensor_count(proto); ++i) {
    const Tensor& t = tensor_of(proto, i);
    if (absent(t)) continue;
    if (kind_of(t.dtype) == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
    if (i < 3 && t.rank < 2) { *reason = "matmul needs operands of rank 2 or more"; return nullptr; }
    if (t.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  }
  Kind kind = kind_of(proto.compute_dtype != 0 ? proto.compute_dtype : tensor_of(proto, 1).dtype);
  if (kind == kKinds) { *reason = "the portable kernels do not compute in this dtype"; return nullptr; }
  auto plan = std::make_unique<MatmulPlan>();
  Named which = kNamed_matmul_i64;
  Compute compute = compute_of(kind);
  if (compute == kCF32) which = kNamed_matmul_f32;
  else if (compute == kCF64) which = kNamed_matmul_f64;
  else if (compute == kCC128) which = kNamed_matmul_c128;
  else compute = kCI64;
  plan->buffered = kind_of(out.dtype) != kComputeKind[compute];
  plan->rows_max = compute == kCC128 ? 64 : plan->buffered ? 96 : 192;
  plan->has_c = given(proto, 3);
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
