// csrc/ops/softmax.cc: softmax, log_softmax and their backwards.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

uint32_t dim_key(uint32_t op) {
  switch (op) {
    case FLHAL_OP_SOFTMAX: return FLHAL_ATTR_SOFTMAX_DIM;
    case FLHAL_OP_LOG_SOFTMAX: return FLHAL_ATTR_LOG_SOFTMAX_DIM;
    case FLHAL_OP_SOFTMAX_BACKWARD: return FLHAL_ATTR_SOFTMAX_BACKWARD_DIM;
    default: return FLHAL_ATTR_LOG_SOFTMAX_BACKWARD_DIM;
  }
}

bool run(Frame& f, uint32_t n_operands, int64_t dim) {
  const at::Tensor& out = f.result();
  if (out.numel() == 0) return true;
  const bool scalar = out.dim() == 0;          // a number is a vector of one element
  const int64_t one[1] = {1};
  OpCall call(f.op(), f.compute);
  if (scalar) call.out_as(out, one, one);
  else call.out(out);
  for (uint32_t i = 0; i < n_operands; ++i) {
    if (scalar) call.in_as(f.tensor(i), one, one);
    else call.in(f.tensor(i));
  }
  call.attr(dim_key(f.op()), scalar ? int64_t{0} : at::maybe_wrap_dim(dim, out.dim()));
  return f.submit(call);
}

}  // namespace

bool softmax(Frame& f) { return run(f, 1, f.args[1].toInt()); }             // (self, dim, half_to_float)
bool softmax_backward(Frame& f) { return run(f, 2, f.args[2].toInt()); }    // (grad_output, output, dim, input_dtype)

}  // namespace torch_fl
