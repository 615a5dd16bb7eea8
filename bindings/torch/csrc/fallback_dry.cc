// csrc/fallback_dry.cc: what a fallback would do, without doing it.
//
// Idea: shapes come from the operator's Meta kernel; where it has none (results that depend on values) the CPU operator runs on
// zeros. Device memory is never touched: in a dry run device tensors have none.
#include "fallback_dry.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include "call.h"
#include "call_site.h"
#include "device.h"
#include "factories.h"

namespace torch_fl {
namespace {

template <typename Change>
c10::IValue change_tensors(const c10::IValue& value, Change&& change) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(change(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(t.defined() ? change(t) : t);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& t : value.toOptionalTensorVector()) list.push_back(t && t->defined() ? std::optional<at::Tensor>(change(*t)) : t);
    return list;
  }
  return value;
}

void run_on(c10::DispatchKey key, const c10::OperatorHandle& op, const torch::jit::Stack& arguments, torch::jit::Stack* out) {
  const c10::Device place(key == c10::DispatchKey::Meta ? c10::kMeta : c10::kCPU);
  for (const c10::IValue& argument : arguments) {
    if (argument.isGenerator()) {
      out->emplace_back();
    } else if (argument.isDevice()) {
      out->emplace_back(place);
    } else {
      out->push_back(change_tensors(argument, [&](const at::Tensor& t) -> at::Tensor {
        if (t.device().type() != kDeviceType) return t;
        at::Tensor twin = at::empty_strided(t.sizes(), t.strides(), t.options().device(place));
        return place.is_cpu() ? twin.zero_() : twin;
      }));
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(key), out);
}

}  // namespace

void dry_fallback(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack, c10::DeviceIndex device, const char* reason) {
  dry_run_note_fallback(info.name, reason);
  const size_t n = op.schema().arguments().size();
  const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
  torch::jit::Stack results;
  bool by_values = op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output);
  if (!by_values) {
    try {
      run_on(c10::DispatchKey::Meta, op, arguments, &results);
    } catch (const std::exception&) {
      if (g_python_clear_error != nullptr) g_python_clear_error();   // a Meta kernel written in Python leaves its error set
      by_values = true;
      results.clear();
    }
  }
  if (by_values) run_on(c10::DispatchKey::CPU, op, arguments, &results);
  torch::jit::drop(*stack, n);
  for (size_t i = 0; i < results.size(); ++i) {
    const int same = i < info.returns_arg.size() ? info.returns_arg[i] : -1;
    if (same < 0) {
      stack->push_back(change_tensors(results[i], [&](const at::Tensor& t) {
        return empty_like_strided(t.sizes(), t.strides(), t.scalar_type(), device);
      }));
      continue;
    }
    const c10::IValue& original = arguments[static_cast<size_t>(same)];
    if (original.isTensor() && results[i].isTensor() && original.toTensor().sizes() != results[i].toTensor().sizes()) {
      original.toTensor().resize_(results[i].toTensor().sizes());
    }
    stack->push_back(original);
  }
}

}  // namespace torch_fl
