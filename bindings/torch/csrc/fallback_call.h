// csrc/fallback_call.h: what both ways to the CPU (fallback.cc for dense tensors, sparse.cc) do with an operator's boxed arguments.
//
// Idea: the walk over arguments, lists and results is here once; the ways differ in what a tensor's twin on the CPU is and in how a
// result comes back, which they give as functions.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>
#include <flhal/flhal.h>

#include <utility>

#include "call_site.h"
#include "device.h"
#include "fallback.h"
#include "fallback_schema.h"

namespace torch_fl {

inline bool on_device(const at::Tensor& t) { return t.defined() && t.device().type() == kDeviceType; }

class FallbackCall {
 public:
  FallbackCall(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack)
      : info_(info), stack_(stack), n_arguments_(op.schema().arguments().size()) {}

  // The index of the one device that the arguments lie on; -1: none of them does.
  c10::DeviceIndex find_device() {
    each_tensor([&](const at::Tensor& t, size_t) {
      if (!on_device(t)) return;
      if (device_ < 0) device_ = t.device().index();
      if (t.device().index() != device_) raise_two_devices(c10::Device(kDeviceType, device_), t.device());
    });
    return device_;
  }

  // CPU numbers (0-dim) are legal beside device tensors, CPU tensors are not, and none may be written.
  void check_mixed() {
    each_tensor([&](const at::Tensor& t, size_t i) {
      if (on_device(t)) return;
      if (t.device().is_cpu() && ((t.dim() == 0 && !info_.written[i]) || info_.may_be_cpu[i])) return;
      raise_two_devices(c10::Device(kDeviceType, device_), t.device());
    });
  }

  uint64_t bytes_to_host = 0, bytes_to_device = 0;

 protected:
  bool written(size_t argument) const { return info_.written[argument]; }

  // Calls visit(tensor, argument's number) for every defined tensor.
  template <typename Visit>
  void each_tensor(Visit&& visit) {
    for (size_t i = 0; i < n_arguments_; ++i) {
      const c10::IValue& value = argument(i);
      if (value.isTensor()) {
        const at::Tensor& t = value.toTensor();
        if (t.defined()) visit(t, i);
      } else if (value.isTensorList()) {
        for (const at::Tensor& t : value.toTensorVector()) {
          if (t.defined()) visit(t, i);
        }
      } else if (value.isOptionalTensorList()) {
        for (const auto& t : value.toOptionalTensorVector()) {
          if (t && t->defined()) visit(*t, i);
        }
      }
    }
  }

  // Puts twin_of(tensor, written) in place of every tensor of the device, and the CPU in place of the device itself.
  template <typename TwinOf>
  void replace_arguments(TwinOf&& twin_of) {
    for (size_t i = 0; i < n_arguments_; ++i) {
      c10::IValue& value = argument(i);
      const bool written = info_.written[i];
      if (value.isTensor()) {
        const at::Tensor& t = value.toTensor();
        if (on_device(t)) {
          kept_.emplace_back(i, value);
          value = twin_of(t, written);
        }
      } else if (value.isTensorList()) {
        kept_.emplace_back(i, value);
        c10::List<at::Tensor> moved;
        for (const at::Tensor& t : value.toTensorVector()) moved.push_back(on_device(t) ? twin_of(t, written) : t);
        value = std::move(moved);
      } else if (value.isOptionalTensorList()) {
        kept_.emplace_back(i, value);
        c10::List<std::optional<at::Tensor>> moved;
        for (const auto& t : value.toOptionalTensorVector()) {
          moved.push_back(t && on_device(*t) ? std::optional<at::Tensor>(twin_of(*t, written)) : t);
        }
        value = std::move(moved);
      } else if (value.isDevice() && value.toDevice().type() == kDeviceType) {
        value = c10::Device(c10::kCPU);
      }
    }
  }

  // Results that are arguments become those again, to_device(tensor) makes the others.
  template <typename ToDevice>
  void replace_results(ToDevice&& to_device) {
    const size_t n = info_.returns_arg.size();
    for (size_t i = 0; i < n; ++i) {
      c10::IValue& value = torch::jit::peek(*stack_, i, n);
      const int same = info_.returns_arg[i];
      if (same >= 0) {
        value = kept(same);
      } else if (value.isTensor()) {
        if (value.toTensor().defined()) value = to_device(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> moved;
        for (const at::Tensor& t : value.toTensorVector()) moved.push_back(t.defined() ? to_device(t) : t);
        value = std::move(moved);
      }
    }
  }

  c10::DeviceIndex device_ = -1;

 private:
  // Arguments lie at the stack's end before the call, results after it.
  c10::IValue& argument(size_t i) { return torch::jit::peek(*stack_, i, n_arguments_); }
  const c10::IValue& kept(int i) const {
    for (const auto& [index, value] : kept_) {
      if (index == static_cast<size_t>(i)) return value;
    }
    TORCH_INTERNAL_ASSERT(false, info_.name, ": result ", i, " names an argument that holds no tensor of this device");
  }

  const OpInfo& info_;
  torch::jit::Stack* stack_;
  const size_t n_arguments_;
  c10::SmallVector<std::pair<size_t, c10::IValue>, 6> kept_;
};

// Accounts for the call however it ends.
struct FallbackAccount {
  uint64_t ticket = 0;
  const FallbackCall* call;
  const OpInfo& info;
  ~FallbackAccount() {
    const std::string site = call_site_once(info.site_epoch);
    flhal_fallback_leave(ticket, call->bytes_to_host, call->bytes_to_device, site.empty() ? nullptr : site.c_str());
  }
};

}  // namespace torch_fl
