// csrc/autocast.cc: torch.autocast('fl_device'): torch's own lists of what runs in the lower type and what stays in float32.
// The fallthrough for every other operator stands in fallback.cc.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {

#define TORCH_FL_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TORCH_FL_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TORCH_FL_FP32_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TORCH_FL_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
#define TORCH_FL_APPEND(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(TORCH_FL_LOWER)
  AT_FORALL_FP32(TORCH_FL_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_FL_FP32_SET)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(TORCH_FL_APPEND)
  AT_FORALL_PROMOTE(TORCH_FL_PROMOTE)
}

}  // namespace at::autocast
