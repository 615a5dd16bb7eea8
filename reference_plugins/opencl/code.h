// reference_plugins/opencl/code.h: what OpenCL's codes mean to core, and their names in texts.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>
#include <string>

#include "cl.h"

namespace flhal::opencl {

// "CL_OUT_OF_RESOURCES (-5)"; a number alone for codes of vendors.
std::string code_name(cl_int code);

// The failure a code is. CL_OUT_OF_RESOURCES is work that failed, not memory: drivers answer it for kernels that touch what
// they may not or need too much; allocation asks is_exhaustion() first.
flhal_status status_of(cl_int code);

// An answer to an allocation that may be different after something was freed.
bool is_exhaustion(cl_int code);

// Texts go to core by this; set by init, and kept: drivers may call back late.
void set_host(const flhal_host_v1* host);
const flhal_host_v1* host();

// Leaves `text` with core and gives the status back.
flhal_status fail(flhal_status status, const std::string& text, cl_int code = 0);
// FLHAL_E_UNSUPPORTED when a struct's `next` holds an extension that may not be ignored: this plugin knows none.
flhal_status extensions(const void* next, const char* slot);
// The same for a call of OpenCL that answered `code`: "opencl: <doing>: <call> answered <name>". `doing` names the slot.
flhal_status fail_code(cl_int code, const char* doing, const char* call, const std::string& more = "");

}  // namespace flhal::opencl
