// csrc/fallback_random.h: random CPU operators under the device's seed.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include "fallback_schema.h"

namespace torch_fl {

// For the duration of one fallback call. An operator with a Generator argument gets a CPU generator seeded from ours; one that
// draws without such an argument finds torch's default CPU generator seeded so, and that one gets its state back afterwards.
// Each call moves our generator by one counter.
class RandomScope {
 public:
  RandomScope(const OpInfo& info, const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DeviceIndex device);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;

 private:
  at::Tensor state_before_;
};

}  // namespace torch_fl
