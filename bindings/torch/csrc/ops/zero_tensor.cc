// csrc/ops/zero_tensor.cc: _efficientzerotensor, the tensor of zeros without memory that forward-mode autograd makes. It is a
// factory, so each backend needs its own; every operator but the few that know it sees a dense tensor instead.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

#include "csrc/device.h"

namespace torch_fl {
namespace {

struct ZeroAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t) override { return {nullptr, nullptr, &nothing, c10::Device(kDeviceType, current_device())}; }
  c10::DeleterFnPtr raw_deleter() const override { return &nothing; }
  void copy_data(void*, const void*, std::size_t) const override {}
  static void nothing(void*) {}
};

at::Tensor efficient_zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                                 std::optional<c10::Device> device, std::optional<bool>) {
  static ZeroAllocator allocator;
  const c10::DeviceIndex before = current_device(), index = device.has_value() ? checked_index(*device) : before;
  set_current_device(index);
  constexpr c10::DispatchKeySet keys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  at::Tensor out(at::detail::empty_generic(size, &allocator, keys, dtype.value_or(at::kFloat), std::nullopt));
  set_current_device(before);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_efficientzerotensor", TORCH_FN(efficient_zero_tensor)); }

}  // namespace torch_fl
