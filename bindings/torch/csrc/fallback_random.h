// csrc/fallback_random.h: random CPU operators under the device's seed.
#pragma once

#include <ATen/core/stack.h>

#include "fallback_schema.h"

namespace torch_fl {

// For one fallback call of an operator with a Generator argument: puts there a CPU generator of its own, seeded from the given
// generator of the device or the default one, which moves by one counter.
void give_cpu_generator(const OpInfo& info, torch::jit::Stack* stack, c10::DeviceIndex device);

}  // namespace torch_fl
