// src/dispatch/infer.cc: flhal_op_infer: sizes, strides and dtype of outputs, for callers without a framework.
#include <flhal/ops.h>

#include <algorithm>

#include "dispatch/call_refusals.h"
#include "dispatch/dispatch.h"
#include "dispatch/layout.h"
#include "dispatch/opset/call_view.h"

namespace flhal {
namespace {

bool is_half(flhal_dtype t) { return t == FLHAL_F16 || t == FLHAL_BF16; }
bool is_whole(flhal_dtype t) { return FLHAL_DTYPE_CODE(t) <= 1 || t == FLHAL_BOOL; }

flhal_dtype output_dtype(const opset::CallView& v, uint32_t i, flhal_dtype compute, flhal_dtype asked) {
  flhal_dtype first = v.n_in() ? v.in(0).dtype : compute;
  if (i > 0) {
    switch (v.def.number) {
      case FLHAL_OP_MAX_POOL2D: return FLHAL_I64;
      case FLHAL_OP_LAYER_NORM:
      case FLHAL_OP_BATCH_NORM: return is_half(first) ? FLHAL_F32 : first;
      default: return first;
    }
  }
  switch (v.def.out_dtype) {
    case opset::OutDtype::kBool: return FLHAL_BOOL;
    case opset::OutDtype::kInt64: return FLHAL_I64;
    case opset::OutDtype::kInput0: return first;
    case opset::OutDtype::kAccumulate: return is_whole(compute) ? FLHAL_I64 : compute;
    case opset::OutDtype::kCaller: return asked ? asked : compute;
    case opset::OutDtype::kCompute: return compute;
  }
  return compute;
}

}  // namespace

Status infer_outputs(const flhal_op_call* call, flhal_tensor* outputs) {
  if (!call || !outputs) return fail(FLHAL_E_INVALID, "flhal_op_infer: call and outputs may not be NULL");
  FLHAL_TRY(check_call_head(call));
  const opset::OpDef* def = opset::row_of(call->op);
  if (!def && call->op == 0 && call->name) def = opset::find(call->name);
  if (!def) return fail(FLHAL_E_NOT_FOUND, "flhal_op_infer: there is no op number {:#x} with a shape rule", call->op);
  FLHAL_TRY(check_counts(*def, call));
  opset::CallView view{*def, *call};
  for (uint32_t i = 0; i < call->n_inputs; ++i) {
    const flhal_tensor& t = view.in(i);
    if (t.flags & FLHAL_TENSOR_ABSENT) {
      const uint32_t slot = std::min<uint32_t>(def->n_outputs + i, opset::kMaxOperands - 1);
      if (def->operands[slot].optional) continue;
      return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: input {} is absent, but not optional", def->name, i);
    }
    if (t.rank > opset::kMaxRank || (t.rank != 0 && !t.sizes))
      return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: input {} has rank {} and no sizes, or a rank above {}", def->name, i,
                  t.rank, opset::kMaxRank);
    for (uint32_t d = 0; d < t.rank; ++d)
      if (t.sizes[d] < 0 || static_cast<uint64_t>(t.sizes[d]) >= kMaxElements)
        return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: input {} has the size {} in dimension {}; 0 to 2^56 are possible", def->name,
                    i, t.sizes[d], d);
  }
  opset::Inferred inferred;
  std::string why;
  if (!def->infer(view, &inferred, &why)) return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: {}", def->name, why);
  flhal_dtype compute = call->compute_dtype;
  for (uint32_t i = 0; !compute && i < call->n_inputs; ++i)
    if (!(view.in(i).flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR))) compute = view.in(i).dtype;
  if (!compute) compute = FLHAL_F32;
  for (uint32_t i = 0; i < call->n_outputs; ++i) {
    flhal_tensor& out = outputs[i];
    if (out.flags & FLHAL_TENSOR_ABSENT) continue;
    out.dtype = output_dtype(view, i, compute, out.dtype);
    const auto& shape = inferred.outs[i];
    if (shape.free) {
      if (out.rank && !out.sizes) return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: the caller chooses the sizes", def->name);
    } else {
      out.rank = static_cast<uint16_t>(shape.rank);
    }
    if (out.rank && (!out.sizes || !out.strides))
      return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: output {} has no arrays for sizes and strides", def->name, i);
    auto* sizes = const_cast<int64_t*>(out.sizes);
    auto* strides = const_cast<int64_t*>(out.strides);
    int64_t step = 1;
    for (uint32_t d = out.rank; d-- > 0;) {
      if (!shape.free) sizes[d] = shape.sizes[d];
      strides[d] = step;
      if (__builtin_mul_overflow(step, sizes[d] > 0 ? sizes[d] : 1, &step) || static_cast<uint64_t>(step) >= kMaxElements)
        return fail(FLHAL_E_INVALID, "flhal_op_infer: {}: output {} would have more than 2^56 elements", def->name, i);
    }
  }
  return FLHAL_OK;
}

}  // namespace flhal
