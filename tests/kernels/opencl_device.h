// tests/kernels/opencl_device.h: runs a text plan on an OpenCL device directly, without core and without a plugin.
#pragma once

#include <string>
#include <vector>

#include "array.h"
#include "kernels/kernel_plan.h"

namespace flhal::test {

// FLHAL_TEST_KERNEL_DIALECT: unset or "host"; "opencl-fat", "opencl-thin". False: host.
bool text_target(kernels::Target* out);

// The arrays of one call as buffers on the device; take() brings every byte back, canaries too.
class DeviceArrays {
 public:
  DeviceArrays();
  ~DeviceArrays();
  DeviceArrays(const DeviceArrays&) = delete;
  flhal_tensor_v1 tensor(const Array& array);
  // Answers the number of groups.
  uint64_t run(const kernels::KernelPlan& plan, const flhal_op_call_v1& call, kernels::KernelError* error);
  void take();

 private:
  struct Slot { Array* array; void* buffer; };
  std::vector<Slot> slots_;
};

// How many different texts were compiled so far.
size_t compiled_texts();

}  // namespace flhal::test
