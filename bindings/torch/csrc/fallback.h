// csrc/fallback.h: running PyTorch's CPU operator on device tensors, with permission and accounts (flhal_fallback_enter/leave).
//
// For native kernels that decline at run time:
//   if (status == FLHAL_DECLINED) return fallback_op<at::_ops::add_Tensor>(flhal_last_decline(), self, other, alpha);
// In-place and out= forms work the same way: the result is the tensor that was passed in.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_fl {

// `reason`: static text, "" when none. Arguments are replaced by the results on the stack. Raises torch's device sentence for
// mixed operands, NotImplementedError for views, factories and asynchronous ops, RuntimeError when the policy is strict.
void run_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* reason);
void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// The reason that boxed_fallback reports in this thread; set for the duration of fallback_op.
class ReasonScope {
 public:
  explicit ReasonScope(const char* reason);
  ~ReasonScope();
  ReasonScope(const ReasonScope&) = delete;

 private:
  const char* before_;
};

template <class Op, class... Args>
auto fallback_op(const char* reason, Args&&... args) {
  static const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
  static const c10::BoxedKernel kernel = c10::BoxedKernel::makeFromFunction<&boxed_fallback>();
  ReasonScope scope(reason);
  using Schema = typename Op::schema;
  return c10::impl::BoxedKernelWrapper<Schema>::call(kernel, handle, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                     std::forward<Args>(args)...);
}

// The sentence torch itself uses for operands on two devices.
[[noreturn]] void raise_two_devices(c10::Device a, c10::Device b);

}  // namespace torch_fl
