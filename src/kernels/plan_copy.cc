// src/kernels/plan_copy.cc: copy (any layouts, any pair of dtypes) and fill.
#include <new>

#include "kernels/families.h"
#include "kernels/pointwise_geometry.h"

namespace flhal::kernels {
namespace {

constexpr uint64_t kChunk = 16384;

int log2_bytes(uint32_t bytes) { return __builtin_ctz(bytes); }

struct CopyPlan final : KernelPlan {
  Kind native[2] = {};
  bool raw = false;              // dst and src hold the same type: bytes move
  bool convert_scalar = false;   // a host scalar is converted here, once, and then moved raw

  void arguments(const Call& call, LaunchArgs& out) const override {
    begin_args(out, 1);
    auto* p = new (out.values) PointwiseParams;
    const Tensor* operands[2] = {&tensor_of(call, 0), &tensor_of(call, 1)};
    pointwise_geometry(operands, 2, native, *p);
    if (convert_scalar) p->kind[1] = p->kind[0];
    p->chunk = kChunk;
    p->error = nullptr;
    for (int i = 0; i < 4; ++i) { p->pf[i] = 0; p->pi[i] = 0; }
    out.groups[0] = p->n <= kChunk ? 1 : (p->n + kChunk - 1) / kChunk;
    add_value(out, pointwise_bytes(*p));
    add_memory(out, call, 0);
    if (convert_scalar) {
      level().convert_one(add_value(out, 16), kind_of(operands[0]->dtype),
                          reinterpret_cast<const void*>(operands[1]->address), kind_of(operands[1]->dtype));
    } else {
      add_operand(out, call, 1);
    }
  }
};

}  // namespace

PlanPtr plan_copy(const Call& proto, const char** reason) {
  const Tensor& out = tensor_of(proto, 0);
  const Tensor& in = tensor_of(proto, 1);
  Kind to = kind_of(out.dtype), from = kind_of(in.dtype);
  uint32_t bytes = FLHAL_DTYPE_BYTES(out.dtype);
  auto plan = std::make_unique<CopyPlan>();
  if (out.dtype == in.dtype && bytes <= 16 && (bytes & (bytes - 1)) == 0 && bytes != 0) {
    if (to == kKinds) { *reason = "the portable kernels do not know this dtype"; return nullptr; }
    plan->raw = true;
  } else if (to == kKinds || from == kKinds) {
    *reason = "the portable kernels do not convert this dtype";
    return nullptr;
  }
  if (out.rank > kMaxRank) { *reason = "rank above 16"; return nullptr; }
  plan->native[0] = to;
  plan->native[1] = from;
  if (!plan->raw && host_scalar(in)) plan->raw = plan->convert_scalar = true;
  if (plan->raw) {
    plan->host = level().copy_raw[log2_bytes(bytes)];
  } else {
    Compute via = from == kBool ? kCI64 : compute_of(from);
    if (via == kCI32 && to != kI32) via = kCI64;
    plan->native[0] = plan->native[1] = kComputeKind[via];
    plan->host = level().pointwise[via][kExpr_copy];
  }
  plan->function = function_name(plan->host);
  return plan;
}

}  // namespace flhal::kernels
