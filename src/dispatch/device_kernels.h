// src/dispatch/device_kernels.h: the portable kernels' modules on each device: loaded at first use, in the best dialect
// that the chip offers and flhal writes.
#pragma once

#include "core/device.h"
#include "dispatch/reasons.h"
#include "kernels/kernel_plan.h"

namespace flhal {

// false and `why` when the device runs no portable kernels.
bool device_dialect(const Device& device, kernels::Dialect* out, Refusal* why);
// The function of that name; nullptr and `why` when it does not build. May compile; no lock of dispatch is held meanwhile
// but the device's own.
flhal_p_function* device_function(Device* device, kernels::Dialect dialect, const char* name, Refusal* why);

}  // namespace flhal
