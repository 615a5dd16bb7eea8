// csrc/ops/twins.h: the arguments of a call with other tensors in the place of its own, to ask another kernel about the call.
#pragma once

#include "csrc/ops/frame.h"

namespace torch_fl {

// `value` with twin(tensor) for every tensor, also for undefined ones; generators become generator().
template <typename Twin, typename Generator>
c10::IValue with_twins(const c10::IValue& value, Twin&& twin, Generator&& generator) {
  if (value.isTensor()) return twin(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(twin(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : value.toOptionalTensorVector())
      list.push_back(t ? std::optional<at::Tensor>(twin(*t)) : std::nullopt);
    return list;
  }
  if (value.isGenerator()) return generator();
  return value;
}

// The first n arguments. twin(tensor, argument's number); x.add_(x): one tensor stays one tensor.
template <typename Twin, typename Generator>
torch::jit::Stack twin_stack(const Frame& f, uint32_t n, Twin&& twin, Generator&& generator) {
  torch::jit::Stack stack;
  stack.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    bool seen = false;
    if (f.args[i].isTensor() && f.args[i].toTensor().defined())
      for (uint32_t j = 0; j < i && !seen; ++j)
        if (f.args[j].isTensor() && f.args[j].toTensor().is_same(f.args[i].toTensor())) {
          stack.push_back(c10::IValue(stack[j]));
          seen = true;
        }
    if (!seen) stack.push_back(with_twins(f.args[i], [&](const at::Tensor& t) { return twin(t, i); }, generator));
  }
  return stack;
}

}  // namespace torch_fl
