// tests/kernels/opencl_device.cc: see opencl_device.h.
#include "opencl_device.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>

#if FLHAL_TEST_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <map>
#endif

namespace flhal::test {

bool text_target(kernels::Target* out) {
  const char* name = std::getenv("FLHAL_TEST_KERNEL_DIALECT");
  if (!name || std::string(name) == "host") return false;
  *out = {};
  out->dialect = kernels::Dialect::kOpenClC;
  out->schedule = std::string(name) == "opencl-thin" ? kernels::Schedule::kThin : kernels::Schedule::kFat;
  out->local_bytes = 12288;   // little, so that small images are cut into rows
  if (const char* bytes = std::getenv("FLHAL_TEST_KERNEL_VECTOR_BYTES")) out->vector_bytes = static_cast<uint32_t>(std::atoi(bytes));
  return true;
}

#if FLHAL_TEST_OPENCL
namespace {

void must(cl_int code, const char* what) {
  INFO(what << " answered " << code);
  REQUIRE(code == CL_SUCCESS);
}

struct Device {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::map<const kernels::TextKernel*, cl_kernel> kernels;

  static Device& get() {
    static Device& d = *new Device;
    return d;
  }
  Device() {
    cl_platform_id platform;
    cl_int code;
    must(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    must(code, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &code);
    must(code, "clCreateCommandQueue");
  }
  cl_kernel kernel(const kernels::TextKernel* text) {
    cl_kernel& k = kernels[text];
    if (k) return k;
    const char* source = text->source.c_str();
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
    must(code, "clCreateProgramWithSource");
    const bool built = clBuildProgram(program, 1, &device, text->options.c_str(), nullptr, nullptr) == CL_SUCCESS;
    std::vector<char> log(100000);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    // A warning is a line on the user's terminal for each of some thirty kernels.
    if (!built || std::strstr(log.data(), "warning") != nullptr) FAIL(text->name << " does not build without a word:\n" << log.data());
    k = clCreateKernel(program, text->function, &code);
    must(code, "clCreateKernel");
    return k;
  }
  cl_mem buffer(const void* bytes, size_t n) {
    cl_int code;
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, n, const_cast<void*>(bytes), &code);
    must(code, "clCreateBuffer");
    return m;
  }
};

}  // namespace

size_t compiled_texts() { return Device::get().kernels.size(); }

DeviceArrays::DeviceArrays() = default;
DeviceArrays::~DeviceArrays() {
  for (Slot& s : slots_) clReleaseMemObject(static_cast<cl_mem>(s.buffer));
}

flhal_tensor_v1 DeviceArrays::tensor(const Array& array) {
  flhal_tensor_v1 t = array.tensor();
  if (array.absent || array.scalar) return t;
  void* buffer = nullptr;
  for (Slot& s : slots_)
    if (s.array->bytes.data() == array.bytes.data()) buffer = s.buffer;
  if (!buffer) {
    buffer = Device::get().buffer(array.bytes.data(), array.bytes.size());
    slots_.push_back({const_cast<Array*>(&array), buffer});
  }
  t.memory = reinterpret_cast<flhal_p_memory*>(buffer);
  t.offset = t.address - reinterpret_cast<uint64_t>(array.bytes.data());
  t.address = 0;
  return t;
}

uint64_t DeviceArrays::run(const kernels::KernelPlan& plan, const flhal_op_call_v1& call, kernels::KernelError* error) {
  Device& d = Device::get();
  kernels::LaunchArgs args;
  uint64_t faults[8] = {};                      // the error lies 16 bytes in
  cl_mem fault_buffer = d.buffer(faults, sizeof faults);
  args.error_memory = reinterpret_cast<flhal_p_memory*>(fault_buffer);
  args.error_offset = 16;
  plan.arguments(call, args);
  REQUIRE(args.values_used <= sizeof args.values);
  cl_kernel k = d.kernel(plan.text);
  for (uint32_t i = 0; i < args.n_args; ++i) {
    const flhal_p_arg& a = args.args[i];
    cl_mem m = reinterpret_cast<cl_mem>(a.memory);
    cl_int code = a.kind == FLHAL_ARG_MEMORY ? clSetKernelArg(k, i, sizeof m, &m)
                  : a.kind == FLHAL_ARG_LOCAL ? clSetKernelArg(k, i, a.size, nullptr)
                                              : clSetKernelArg(k, i, a.size, a.value);
    INFO(plan.text->name << " argument " << i << " of kind " << a.kind << " and size " << a.size);
    must(code, "clSetKernelArg");
    if (a.kind == FLHAL_ARG_MEMORY) REQUIRE(a.offset == 0);
  }
  size_t local[3], global[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = args.group_size[i];
    global[i] = args.groups[i] * local[i];
  }
  must(clEnqueueNDRangeKernel(d.queue, k, 3, nullptr, global, local, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  must(clFinish(d.queue), "clFinish");
  must(clEnqueueReadBuffer(d.queue, fault_buffer, CL_TRUE, 16, sizeof *error, error, 0, nullptr, nullptr), "clEnqueueReadBuffer");
  clReleaseMemObject(fault_buffer);
  return args.groups[0];
}

void DeviceArrays::take() {
  for (Slot& s : slots_)
    must(clEnqueueReadBuffer(Device::get().queue, static_cast<cl_mem>(s.buffer), CL_TRUE, 0, s.array->bytes.size(),
                             s.array->bytes.data(), 0, nullptr, nullptr), "clEnqueueReadBuffer");
}
#else
size_t compiled_texts() { return 0; }
DeviceArrays::DeviceArrays() = default;
DeviceArrays::~DeviceArrays() = default;
flhal_tensor_v1 DeviceArrays::tensor(const Array& array) { return array.tensor(); }
uint64_t DeviceArrays::run(const kernels::KernelPlan&, const flhal_op_call_v1&, kernels::KernelError*) {
  FAIL("built without OpenCL; install ocl-icd-opencl-dev and opencl-headers and configure again");
  return 0;
}
void DeviceArrays::take() {}
#endif

}  // namespace flhal::test
