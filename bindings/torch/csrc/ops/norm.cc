// csrc/ops/norm.cc: layer_norm and batch_norm with their backwards.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
namespace {

// A result that is undefined or has no elements is not asked for.
void out_or_absent(OpCall& call, const at::Tensor& t) { call.out_or_absent(t.defined() && t.numel() > 0 ? t : at::Tensor()); }

}  // namespace

// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (out, mean, rstd)
bool layer_norm(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (x.numel() == 0)
    return f.fill(f.result(1), 0) && f.fill(f.result(2), std::numeric_limits<double>::quiet_NaN());
  OpCall call(FLHAL_OP_LAYER_NORM, x.scalar_type());
  call.out(f.result(0));
  out_or_absent(call, f.result(1));
  out_or_absent(call, f.result(2));
  call.in(x);
  call.in_or_absent(f.tensor(2));
  call.in_or_absent(f.tensor(3));
  call.attr(FLHAL_ATTR_LAYER_NORM_N_DIMS, static_cast<int64_t>(dims_of(f.args[1]).size()));
  call.attr(FLHAL_ATTR_LAYER_NORM_EPS, f.args[4].toDouble());
  return f.submit(call);
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)
bool layer_norm_backward(Frame& f) {
  const at::Tensor& x = f.tensor(1);
  if (x.numel() == 0) return f.fill(f.result(1), 0) && f.fill(f.result(2), 0);
  OpCall call(FLHAL_OP_LAYER_NORM_BACKWARD, x.scalar_type());
  for (uint32_t i = 0; i < 3; ++i) out_or_absent(call, f.result(i));
  call.in(f.tensor(0));
  call.in(x);
  call.in(f.tensor(3));
  call.in(f.tensor(4));
  call.in_or_absent(f.tensor(5));
  call.attr(FLHAL_ATTR_LAYER_NORM_BACKWARD_N_DIMS, static_cast<int64_t>(dims_of(f.args[2]).size()));
  return f.submit(call);
}

// native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps) and
// _native_batch_norm_legit_no_training, which lacks `training`.
bool batch_norm(Frame& f) {
  const at::Tensor& x = f.tensor(0);
  if (x.numel() == 0) return f.decline("batch_norm of nothing");
  TORCH_CHECK_INDEX(x.dim() >= 2, "Dimension out of range: batch_norm takes channels as dimension 1, and the input has ", x.dim());
  const bool has_training = f.n_inputs() == 8;
  const bool training = has_training && f.args[5].toBool();
  if (!training && f.fresh_results())   // the CPU saves nothing then, whatever the Meta kernel says
    for (uint32_t i = 1; i < 3; ++i) f.results[i] = f.temporary({0}, f.results[i].scalar_type());
  OpCall call(FLHAL_OP_BATCH_NORM, x.scalar_type());
  call.out(f.result(0));
  for (uint32_t i = 1; i < 3; ++i) {
    if (training) out_or_absent(call, f.result(i));
    else call.out_or_absent({});
  }
  call.in(x);
  for (uint32_t i = 1; i < 5; ++i) call.in_or_absent(f.tensor(i));
  call.attr(FLHAL_ATTR_BATCH_NORM_TRAINING, static_cast<int64_t>(training));
  call.attr(FLHAL_ATTR_BATCH_NORM_MOMENTUM, f.args[has_training ? 6 : 5].toDouble());
  call.attr(FLHAL_ATTR_BATCH_NORM_EPS, f.args[has_training ? 7 : 6].toDouble());
  return f.submit(call);
}

// native_batch_norm_backward(grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps,
//                            output_mask)
bool batch_norm_backward(Frame& f) {
  const at::Tensor& x = f.tensor(1);
  if (x.numel() == 0) return f.fill(f.result(1), 0) && f.fill(f.result(2), 0);
  const bool train = f.args[7].toBool();
  OpCall call(FLHAL_OP_BATCH_NORM_BACKWARD, x.scalar_type());
  for (uint32_t i = 0; i < 3; ++i) out_or_absent(call, f.result(i));
  call.in(f.tensor(0));
  call.in(x);
  call.in_or_absent(f.tensor(2));
  call.in_or_absent(f.tensor(3));
  call.in_or_absent(f.tensor(4));
  for (uint32_t i = 5; i < 7; ++i) {
    if (train) call.in_or_absent(f.tensor(i));
    else call.in_absent();
  }
  call.attr(FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING, static_cast<int64_t>(train));
  call.attr(FLHAL_ATTR_BATCH_NORM_BACKWARD_EPS, f.args[8].toDouble());
  return f.submit(call);
}

}  // namespace torch_fl
