// csrc/copy.h: moving values between tensors of any layout, dtype and place.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_fl {

// dst[...] = src[...], converting and broadcasting as Tensor.copy_ does; at least one side is ours. CPU sides are complete
// before it returns unless non_blocking and pinned.
void copy_into(const at::Tensor& dst, const at::Tensor& src, bool non_blocking);

}  // namespace torch_fl
