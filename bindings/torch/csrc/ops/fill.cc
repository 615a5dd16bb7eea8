// csrc/ops/fill.cc: fill_ and zero_ (ones, full and their like are composites over these), and numbers that are stored.
#include <ATen/core/Tensor.h>

#include "csrc/ops/frame.h"

namespace torch_fl {
void check_fits(const c10::Scalar& value, c10::ScalarType type) {
  switch (type) {
#define FL_CASE(T, name) \
  case c10::ScalarType::name: (void)value.to<T>(); return;
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(FL_CASE)
    FL_CASE(uint16_t, UInt16)
    FL_CASE(uint32_t, UInt32)
    FL_CASE(uint64_t, UInt64)
#undef FL_CASE
    default: return;   // no tensor of such a type comes here
  }
}

void add_stored_number(Frame& f, OpCall& call, uint32_t i, c10::ScalarType type) {
  c10::Scalar value;
  if (f.is_tensor(i)) {
    const at::Tensor& t = f.tensor(i);
    if (!t.is_cpu() && (in_dry_run() || holds(type, t.scalar_type()))) return call.in(t);
    value = t.item();
  } else {
    value = f.args[i].toScalar();
  }
  check_fits(value, type);
  call.in_scalar(value, type);
}

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
  } else if (f.is_tensor(1)) {                     // a copy, as on the CPU: what does not fit is cut
    const at::Tensor& value = f.tensor(1);
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    if (value.is_cpu()) call.in_host(value.unsafeGetTensorImpl());
    else call.in(value);
  } else {
    add_stored_number(f, call, 1, self.scalar_type());
  }
  return f.submit(call);
}

}  // namespace torch_fl
