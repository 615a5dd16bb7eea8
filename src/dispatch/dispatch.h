// src/dispatch/dispatch.h: what the layers above and beside dispatch call.
#pragma once

#include <flhal/op.h>

#include "core/stream.h"

namespace flhal {

// flhal_op_run's body for every call (hot_path.h tries the plainest ones first). `stream` has been checked.
Status run_call(Stream* stream, const flhal_op_call* call);

// flhal_op_route's and flhal_op_infer's bodies.
Status route_of_call(Device* device, const flhal_op_call* call, uint32_t* out_route, const char** out_reason);
Status infer_outputs(const flhal_op_call* call, flhal_tensor* outputs);

// Before device_close and plugin shutdown, when all work of the device has ended: gives plans, kernel modules and
// application modules back to the plugin. Their handles elsewhere stay valid and answer FLHAL_E_INVALID.
void dispatch_forget_device(Device* device);

// Parts of it, each in the file of its route.
void destroy_native_plans(Device* device);
void unload_kernel_modules(Device* device);
void unload_application_modules(Device* device);

}  // namespace flhal
