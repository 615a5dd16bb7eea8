// csrc/ops/fill.cc: fill_ and zero_. ones, full and their like are composites over these.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {

// fill_(self, value), zero_(self). The number is rounded to self's dtype first, as the CPU does.
bool fill(Frame& f) {
  const at::Tensor& self = f.result();
  if (self.numel() == 0) return true;
  // An expanded tensor is written once per element that it has.
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0) sizes[d] = 1;
  OpCall call(FLHAL_OP_FILL, self.scalar_type());
  call.out_as(self, sizes, self.strides());
  if (f.n_inputs() < 2) {
    call.in_scalar(c10::Scalar(0), self.scalar_type());
  } else if (f.is_tensor(1)) {
    const at::Tensor& value = f.tensor(1);
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    if (value.is_cpu()) call.in_host(value.unsafeGetTensorImpl());
    else call.in(value);
  } else {
    call.in_scalar(f.args[1].toScalar(), self.scalar_type());
  }
  return f.submit(call);
}

}  // namespace torch_fl
