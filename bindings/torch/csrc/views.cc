// csrc/views.cc: the six views that need a kernel per backend. All other views are composites of these.
//
// They are torch's own, but for the view of a dense tensor under sizes that are all given: that one has nothing to infer.
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "tensor_parts.h"

namespace torch_fl {
namespace {

at::Tensor view(const at::Tensor& self, at::IntArrayRef sizes) {
  const c10::TensorImpl* base = self.unsafeGetTensorImpl();
  int64_t numel = 1, signs = 0;
  bool fits = true;
  for (int64_t size : sizes) {
    signs |= size;
    fits &= !__builtin_mul_overflow(numel, size, &numel);
  }
  if (C10_LIKELY(fits && signs >= 0 && base->is_contiguous() && numel == base->numel() && numel != 0))
    return at::Tensor(c10::make_intrusive<FlTensor>(base, sizes));
  return at::native::view(self, sizes);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

}  // namespace
}  // namespace torch_fl
