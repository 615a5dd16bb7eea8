// src/dispatch/device_kernels.h: the portable kernels' modules on each device: loaded at first use, in the best dialect
// that the chip offers and flhal writes.
#pragma once

#include "core/device.h"
#include "dispatch/reasons.h"
#include "kernels/kernel_plan.h"

namespace flhal {

// For whom kernels are planned on this device; false and `why` when it runs no portable kernels.
bool device_target(const Device& device, kernels::Target* out, RouteRefusal* why);
// The function of a plan; nullptr and `why` when it does not build. May compile; no lock of dispatch is held meanwhile but
// that of the one kernel.
flhal_p_function* device_function(Device* device, const kernels::KernelPlan& plan, RouteRefusal* why);

// Writes the compiled code of a text to the disk, once. For after a launch of it: some drivers finish compiling at the first.
void keep_kernel_code(Device* device, const kernels::TextKernel& text);

}  // namespace flhal
