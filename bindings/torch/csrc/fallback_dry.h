// csrc/fallback_dry.h: what a fallback would do, without doing it.
#pragma once

#include <ATen/core/stack.h>

#include "fallback_schema.h"

namespace torch_fl {

// In a dry run (call.h): notes the operator as one that leaves the chip, and puts results of the right shape on the stack.
void dry_fallback(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack, c10::DeviceIndex device, const char* reason);

}  // namespace torch_fl
