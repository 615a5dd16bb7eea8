// src/kernels/kernel_fault.h: how a kernel tells of bad data. The first fault of a call is kept.
#pragma once

#include <stdint.h>

namespace flhal::kernels {

struct KernelError;
inline constexpr uint32_t kFaultIndex = 1, kFaultDivision = 2;
// Any thread. `error` may be null. Compiled once, for the plain machine.
void fault(KernelError* error, uint32_t code, int32_t dim, int64_t index, int64_t size);

}  // namespace flhal::kernels
