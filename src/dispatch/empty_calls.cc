// src/dispatch/empty_calls.cc: what an op over nothing gives: a reduction its identity, a matmul without columns
// beta * c, a gradient of an empty batch zeros. Everything else takes the ordinary way.
#include "dispatch/empty_calls.h"

#include <flhal/ops.h>

#include "dispatch/dispatch.h"
#include "dispatch/opset/call_view.h"

namespace flhal {
namespace {

Status run_small(Stream* stream, uint32_t op, const flhal_tensor& out, const flhal_tensor* inputs, uint32_t n_inputs) {
  flhal_tensor tensors[3] = {out};
  for (uint32_t i = 0; i < n_inputs; ++i) tensors[1 + i] = inputs[i];
  flhal_op_call call{};
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = op;
  call.tensors = tensors;
  call.tensor_stride = sizeof(flhal_tensor);
  call.n_outputs = 1;
  call.n_inputs = n_inputs;
  call.compute_dtype = out.dtype;
  return run_call(stream, &call);
}

flhal_tensor number_tensor(const double* value) {
  flhal_tensor t{};
  t.address = reinterpret_cast<uint64_t>(value);
  t.dtype = FLHAL_F64;
  t.flags = FLHAL_TENSOR_HOST_SCALAR;
  return t;
}

Status fill_outputs(PreparedCall& p, double value) {
  flhal_tensor number = number_tensor(&value);
  for (uint32_t i = 0; i < p.source->n_outputs; ++i) {
    const flhal_tensor& out = tensor_of(*p.source, i);
    if (out.flags & FLHAL_TENSOR_ABSENT) continue;
    FLHAL_TRY(run_small(p.stream, FLHAL_OP_FILL, out, &number, 1));
  }
  return FLHAL_OK;
}

Status matmul_without_columns(PreparedCall& p) {
  opset::CallView view{*p.def, *p.source};
  const flhal_tensor& c = view.in(2);
  double beta = view.number(1);
  if (!opset::CallView::given(c) || beta == 0) return fill_outputs(p, 0);
  flhal_tensor inputs[2] = {c, number_tensor(&beta)};
  return run_small(p.stream, FLHAL_OP_MUL, view.out(0), inputs, 2);
}

}  // namespace

Status run_with_empty_input(PreparedCall& p) {
  if (p.def->fills_empty) return fill_outputs(p, p.def->identity);
  switch (p.def->number) {
    case FLHAL_OP_MATMUL: return matmul_without_columns(p);
    case FLHAL_OP_SCATTER:
    case FLHAL_OP_SCATTER_ADD:
    case FLHAL_OP_INDEX_ADD: return FLHAL_OK;
    case FLHAL_OP_LAYER_NORM_BACKWARD:
    case FLHAL_OP_BATCH_NORM_BACKWARD:
    case FLHAL_OP_CONV2D_BACKWARD_WEIGHT:
    case FLHAL_OP_CONV2D_BACKWARD_INPUT:
    case FLHAL_OP_MAX_POOL2D_BACKWARD: return fill_outputs(p, 0);
    default: return run_prepared(p);
  }
}

}  // namespace flhal
