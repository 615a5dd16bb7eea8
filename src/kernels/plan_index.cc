// src/kernels/plan_index.cc: index_select, gather, scatter, scatter_add, index_add.
#include <new>

#include "kernels/families.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kChunk = 16384;

// Dimensions innermost first, neighbours merged that are one run on every side.
void merge(IndexParams& p) {
  uint32_t m = 0;
  for (uint32_t d = 0; d < p.n_dims; ++d) {
    if (p.dims[d].size == 1 && p.n_dims > 1) continue;
    bool merges = m > 0;
    for (uint32_t k = 0; merges && k < 3; ++k) merges = p.dims[d].stride[k] == p.dims[m - 1].stride[k] * p.dims[m - 1].size;
    if (merges) p.dims[m - 1].size *= p.dims[d].size;
    else p.dims[m++] = p.dims[d];
  }
  if (m == 0) { p.dims[0] = {1, {0, 0, 0}}; m = 1; }
  p.n_dims = m;
}

struct IndexPlan final : KernelPlan {
  uint32_t dim_key = 0;

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) IndexParams;
    p->error = out.error;
    p->n_dims = 0;
    const bool reads = call.op == FLHAL_OP_INDEX_SELECT || call.op == FLHAL_OP_GATHER;
    const Tensor& indexed = tensor_of(call, reads ? 1 : 0);
    const Tensor& dense = tensor_of(call, reads ? 0 : 2);
    const Tensor& index = tensor_of(call, reads ? 2 : 1);
    const int64_t dense_bytes = kKindBytes[kind_of(dense.dtype)], bytes = kKindBytes[kind_of(indexed.dtype)];
    const int64_t index_bytes = kKindBytes[kind_of(index.dtype)];
    const uint32_t dim = static_cast<uint32_t>(attr_dim(call, dim_key, 0, indexed.rank));
    p->kind = kind_of(indexed.dtype);
    p->dense_kind = kind_of(dense.dtype);
    p->index_kind = kind_of(index.dtype);
    p->dim = static_cast<int32_t>(dim);
    p->indexed_size = indexed.rank ? indexed.sizes[dim] : 1;
    p->indexed_stride = indexed.rank ? indexed.strides[dim] * bytes : 0;
    p->length = 1;
    p->dense_step = p->index_step = 0;
    auto add = [&](int64_t size, int64_t d, int64_t x, int64_t i) { p->dims[p->n_dims++] = {size, {d, x, i}}; };
    switch (call.op) {
      case FLHAL_OP_INDEX_SELECT:    // out dims: x[:dim], index dims, x[dim+1:]
        for (uint32_t d = dense.rank; d-- > 0;) {
          int64_t size = dense.sizes[d], stride = dense.strides[d] * dense_bytes;
          if (d >= dim + index.rank) add(size, stride, indexed.strides[d - index.rank + 1] * bytes, 0);
          else if (d >= dim) add(size, stride, 0, index.strides[d - dim] * index_bytes);
          else add(size, stride, indexed.strides[d] * bytes, 0);
        }
        break;
      case FLHAL_OP_GATHER:
        for (uint32_t d = dense.rank; d-- > 0;)
          add(dense.sizes[d], dense.strides[d] * dense_bytes, d == dim ? 0 : indexed.strides[d] * bytes, index.strides[d] * index_bytes);
        break;
      case FLHAL_OP_INDEX_ADD:
        for (uint32_t d = dense.rank; d-- > 0;)
          if (d != dim) add(dense.sizes[d], dense.strides[d] * dense_bytes, indexed.strides[d] * bytes, 0);
        p->length = dense.rank ? dense.sizes[dim] : 1;
        p->dense_step = dense.rank ? dense.strides[dim] * dense_bytes : 0;
        p->index_step = index.rank ? index.strides[0] * index_bytes : 0;
        break;
      default: {                     // scatter, scatter_add: index gives the sizes; src is at least as large, or one value
        const bool one = dense.rank == 0;
        for (uint32_t d = index.rank; d-- > 0;)
          if (d != dim)
            add(index.sizes[d], one ? 0 : dense.strides[d] * dense_bytes, indexed.strides[d] * bytes, index.strides[d] * index_bytes);
        p->length = index.rank ? index.sizes[dim] : 1;
        p->dense_step = one ? 0 : dense.strides[dim] * dense_bytes;
        p->index_step = index.rank ? index.strides[dim] * index_bytes : 0;
      }
    }
    p->n = 1;
    for (uint32_t d = 0; d < p->n_dims; ++d) p->n *= static_cast<uint64_t>(p->dims[d].size);
    merge(*p);
    p->chunk = kChunk;
    if (!reads && p->length > 0) {   // a group also goes along the indexed dimension
      p->chunk = kChunk / static_cast<uint64_t>(p->length);
      if (p->chunk < 64) p->chunk = 64;
    }
    out.groups[0] = p->n <= p->chunk ? 1 : (p->n + p->chunk - 1) / p->chunk;
    add_value(out, static_cast<uint32_t>(__builtin_offsetof(IndexParams, dims) + p->n_dims * sizeof(IndexDim)));
    if (reads) {
      add_memory(out, call, 0);
      add_operand(out, call, 1);
      add_operand(out, call, 2);
    } else {
      add_operand(out, call, 2);
      add_memory(out, call, 0);
      add_operand(out, call, 1);
    }
  }
};

}  // namespace

PlanPtr plan_index(const Call& proto, const char** reason) {
  const bool reads = proto.op == FLHAL_OP_INDEX_SELECT || proto.op == FLHAL_OP_GATHER;
  const bool adds = proto.op == FLHAL_OP_SCATTER_ADD || proto.op == FLHAL_OP_INDEX_ADD;
  const Tensor& indexed = tensor_of(proto, reads ? 1 : 0);
  const Tensor& dense = tensor_of(proto, reads ? 0 : 2);
  const Tensor& index = tensor_of(proto, reads ? 2 : 1);
  Kind kind = kind_of(indexed.dtype), index_kind = kind_of(index.dtype), dense_kind = kind_of(dense.dtype);
  if (kind == kKinds || dense_kind == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
  if (index_kind > kU64) { *reason = "an index must be of an integer dtype"; return nullptr; }
  if (!adds && kind != dense_kind) { *reason = "index operators do not convert: source and result must have one dtype"; return nullptr; }
  if (indexed.rank > kMaxRank || dense.rank > kMaxRank || index.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  auto plan = std::make_unique<IndexPlan>();
  plan->can_fail = true;
  int which;
  const int size = __builtin_ctz(kKindBytes[kind]);
  switch (proto.op) {
    case FLHAL_OP_INDEX_SELECT: plan->dim_key = FLHAL_ATTR_INDEX_SELECT_DIM; which = kNamed_gather_1 + size; break;
    case FLHAL_OP_GATHER: plan->dim_key = FLHAL_ATTR_GATHER_DIM; which = kNamed_gather_1 + size; break;
    case FLHAL_OP_SCATTER: plan->dim_key = FLHAL_ATTR_SCATTER_DIM; which = kNamed_scatter_1 + size; break;
    default:
      plan->dim_key = proto.op == FLHAL_OP_INDEX_ADD ? FLHAL_ATTR_INDEX_ADD_DIM : FLHAL_ATTR_SCATTER_ADD_DIM;
      if (kind == dense_kind && kind == kF32) which = kNamed_scatter_add_f32;
      else if (kind == dense_kind && kind == kF64) which = kNamed_scatter_add_f64;
      else if (kind == dense_kind && kind == kI64) which = kNamed_scatter_add_i64;
      else if (kind == kC64 || kind == kC128 || kind == kF64) which = kNamed_scatter_add_any_c128;
      else if (compute_of(kind) == kCF32) which = kNamed_scatter_add_any_f32;
      else which = kNamed_scatter_add_any_i64;
  }
  plan->host = level().named[which];
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
