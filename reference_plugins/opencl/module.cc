// reference_plugins/opencl/module.cc: programs from OpenCL C or from a binary, the binary back, and kernels by name.
#include "module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "surroundings.h"

flhal_p_function::~flhal_p_function() {
  using flhal::opencl::cl;
  if (cl_kernel first = idle.load(std::memory_order_relaxed)) cl.clReleaseKernel(first);
  for (cl_kernel kernel : more) cl.clReleaseKernel(kernel);
}

cl_kernel flhal_p_function::take(cl_int* code) {
  if (cl_kernel kernel = idle.exchange(nullptr, std::memory_order_acquire)) return kernel;
  {
    std::lock_guard lock(mutex);
    if (!more.empty()) {
      cl_kernel kernel = more.back();
      more.pop_back();
      return kernel;
    }
  }
  return flhal::opencl::cl.clCreateKernel(module->program, name.c_str(), code);
}

void flhal_p_function::give(cl_kernel kernel) {
  cl_kernel none = nullptr;
  if (idle.compare_exchange_strong(none, kernel, std::memory_order_release, std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex);
  more.push_back(kernel);
}

namespace flhal::opencl {
namespace {

constexpr char kBinary[] = "opencl-binary";

// The compiler's whole text, as far as core's buffer holds it; the first error matters most, so the end is left out.
void take_log(cl_program program, cl_device_id device, const flhal_p_source_v1* source) {
  if (!source->build_log || source->build_log_capacity == 0) return;
  source->build_log[0] = 0;
  size_t bytes = 0;
  if (cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return;
  std::string text(bytes, '\0');
  if (cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr) != CL_SUCCESS) return;
  text.resize(strnlen(text.c_str(), text.size()));
  if (text.size() >= source->build_log_capacity) {
    std::string left_out = fmt::format("\n[{} more bytes]", text.size());
    size_t kept = source->build_log_capacity > left_out.size() + 1 ? source->build_log_capacity - 1 - left_out.size() : 0;
    text = kept ? text.substr(0, kept) + fmt::format("\n[{} more bytes]", text.size() - kept) : "";
  }
  std::memcpy(source->build_log, text.c_str(), text.size() + 1);
}

// "opencl-c-1.2" -> "-cl-std=CL1.2", unless the caller says another one.
std::string options_of(const flhal_p_source_v1* source) {
  std::string options = source->options ? source->options : "";
  constexpr char kPrefix[] = "opencl-c-";
  if (options.find("-cl-std") != std::string::npos || std::strncmp(source->dialect, kPrefix, sizeof kPrefix - 1) != 0) return options;
  return fmt::format("-cl-std=CL{}{}{}", source->dialect + sizeof kPrefix - 1, options.empty() ? "" : " ", options);
}

bool offers(const Chip& chip, const std::string& dialect) {
  return !dialect.empty() && (" " + chip.dialects + " ").find(" " + dialect + " ") != std::string::npos;
}

cl_program make_program(flhal_p_device* device, const flhal_p_source_v1* source, cl_int* code) {
  const size_t bytes = source->bytes;
  if (std::strcmp(source->dialect, kBinary) == 0) {
    cl_int of_device = CL_SUCCESS;
    auto* data = static_cast<const unsigned char*>(source->data);
    cl_program program = cl.clCreateProgramWithBinary(device->context, 1, &device->chip->device, &bytes, &data, &of_device, code);
    return program;
  }
  auto* text = static_cast<const char*>(source->data);
  return cl.clCreateProgramWithSource(device->context, 1, &text, &bytes, code);
}

flhal_status get_binary(flhal_p_module* module, void* data, uint64_t capacity, uint64_t* out_bytes) {
  return no_throw("x.module_binary", [&]() -> flhal_status {
    KeepSurroundings keep;
    size_t bytes = 0;   // one device per context, so one size and one binary
    cl_int code = cl.clGetProgramInfo(module->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
    if (code != CL_SUCCESS) return fail_code(code, "x.module_binary", "clGetProgramInfo");
    *out_bytes = bytes;
    if (bytes == 0) return FLHAL_DECLINED;
    if (capacity == 0) return FLHAL_OK;
    if (capacity < bytes || data == nullptr)
      return fail(FLHAL_E_INVALID, fmt::format("x.module_binary: the binary has {} bytes and there is room for {}", bytes, data ? capacity : 0));
    unsigned char* to = static_cast<unsigned char*>(data);
    code = cl.clGetProgramInfo(module->program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr);
    return code == CL_SUCCESS ? FLHAL_OK : fail_code(code, "x.module_binary", "clGetProgramInfo");
  });
}

constexpr flhal_x_module_binary_v1 kModuleBinary = {sizeof(flhal_x_module_binary_v1), FLHAL_ST_X_MODULE_BINARY, nullptr, kBinary, get_binary};

}  // namespace

const void* module_binary_table() { return &kModuleBinary; }

namespace slots {

flhal_status module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  if (flhal_status s = extensions(source->next, "module_load"); s != FLHAL_OK) return s;
  return no_throw("module_load", [&]() -> flhal_status {
    KeepSurroundings keep;
    if (source->build_log && source->build_log_capacity) source->build_log[0] = 0;
    std::string dialect = source->dialect ? source->dialect : "";
    if (!offers(*device->chip, dialect))
      return fail(FLHAL_E_UNSUPPORTED, fmt::format("module_load: the dialect \"{}\" is unknown; {} takes {}", dialect, device->chip->product, device->chip->dialects));
    if (source->data == nullptr || source->bytes == 0) return fail(FLHAL_E_INVALID, "module_load: the source is empty; give a text or a binary");
    cl_int code = CL_SUCCESS;
    cl_program program = make_program(device, source, &code);
    if (!program) return fail_code(code, "module_load", dialect == kBinary ? "clCreateProgramWithBinary" : "clCreateProgramWithSource");
    code = cl.clBuildProgram(program, 1, &device->chip->device, options_of(source).c_str(), nullptr, nullptr);
    take_log(program, device->chip->device, source);
    if (code != CL_SUCCESS) {
      cl.clReleaseProgram(program);
      return fail_code(code, "module_load", "clBuildProgram", fmt::format("{} bytes of {}", source->bytes, dialect));
    }
    *out = new flhal_p_module{device, program};
    return FLHAL_OK;
  });
}

void module_unload(flhal_p_module* module) {
  module->functions.clear();
  cl.clReleaseProgram(module->program);
  delete module;
}

flhal_status function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  return no_throw("function_get", [&]() -> flhal_status {
    std::lock_guard lock(module->mutex);
    if (auto at = module->functions.find(name); at != module->functions.end()) {
      *out = at->second.get();
      return FLHAL_OK;
    }
    KeepSurroundings keep;
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = cl.clCreateKernel(module->program, name, &code);
    if (!kernel) {
      char names[1024] = "";
      (void)cl.clGetProgramInfo(module->program, CL_PROGRAM_KERNEL_NAMES, sizeof names, names, nullptr);
      return fail_code(code, "function_get", "clCreateKernel", fmt::format("wanted is \"{}\", the program has \"{}\"", name, names));
    }
    auto function = std::make_unique<flhal_p_function>();
    function->module = module;
    function->name = name;
    function->idle = kernel;
    cl_uint n = 0;
    code = cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, nullptr);
    if (code != CL_SUCCESS) return fail_code(code, "function_get", "clGetKernelInfo");
    function->n_args = n;
    *out = function.get();
    module->functions.emplace(name, std::move(function));
    return FLHAL_OK;
  });
}

}  // namespace slots
}  // namespace flhal::opencl
