// reference_plugins/opencl/launch.cc: arguments and launches.
//
// A memory argument is one `__global` pointer of the kernel. With SVM: the slab's address plus the offset. With buffers: the
// slab's cl_mem when the offset is 0, else a sub-buffer, which devices want at multiples of their base alignment. Portable
// kernels pass offset 0 and their byte offsets in a value. Not tried again: remembering what was set before and leaving out
// what is equal; setting costs 5 ns per argument on PoCL, comparing as much.
#include <fmt/format.h>

#include "module.h"

namespace flhal::opencl {
namespace {

const flhal_p_arg& argument(const flhal_p_launch_v1* l, uint32_t i) {
  return *reinterpret_cast<const flhal_p_arg*>(reinterpret_cast<const char*>(l->args) + static_cast<size_t>(i) * l->arg_stride);
}

// Why a launch was refused, in the caller's words.
[[gnu::cold]] flhal_status refuse_argument(const flhal_p_launch_v1* l, uint32_t i, cl_int code) {
  const flhal_p_arg& a = argument(l, i);
  const Chip& chip = *l->function->module->device->chip;
  const std::string where = fmt::format("launch: {}: argument {}", l->function->name, i);
  if (a.kind == FLHAL_ARG_MEMORY && a.memory && a.memory->buffer && a.offset % chip.base_alignment != 0)
    return fail(FLHAL_E_INVALID, fmt::format("{}: byte {} of its slab; this chip passes memory from multiples of {} on: pass the start "
                                             "of the allocation and the offset as a value, or copy the operand", where, a.offset, chip.base_alignment));
  if (a.kind == FLHAL_ARG_MEMORY && a.memory && a.offset > a.memory->bytes)
    return fail(FLHAL_E_INVALID, fmt::format("{}: offset {} leaves its slab of {} bytes", where, a.offset, a.memory->bytes));
  if (a.kind == FLHAL_ARG_MEMORY && !a.memory && a.address != 0 && chip.memory == Memory::kBuffer)
    return fail(FLHAL_E_INVALID, fmt::format("{}: an address without its slab; this chip has no addresses", where));
  if (code == CL_SUCCESS)
    return fail(FLHAL_E_INVALID, fmt::format("{}: kind {} is none of FLHAL_ARG_VALUE, FLHAL_ARG_MEMORY and FLHAL_ARG_LOCAL", where, a.kind));
  return fail_code(code, where.c_str(), "clSetKernelArg", fmt::format("kind {}, {} bytes", a.kind, a.size));
}

[[gnu::cold]] flhal_status refuse_launch(const flhal_p_launch_v1* l, cl_kernel kernel, cl_int code) {
  flhal_p_function& f = *l->function;
  size_t most = 0;
  (void)cl.clGetKernelWorkGroupInfo(kernel, f.module->device->chip->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  return fail_code(code, "launch", "clEnqueueNDRangeKernel",
                   fmt::format("{}: {} x {} x {} groups of {} x {} x {} work-items; this chip runs at most {} in a group of it", f.name, l->groups[0],
                               l->groups[1], l->groups[2], l->group_size[0], l->group_size[1], l->group_size[2], most));
}

cl_int set_memory(cl_kernel kernel, uint32_t i, const flhal_p_arg& a) {
  if (a.memory == nullptr) {
    if (a.address == 0) return cl.clSetKernelArg(kernel, i, sizeof(cl_mem), nullptr);   // an operand that is absent
    return cl.clSetKernelArgSVMPointer ? cl.clSetKernelArgSVMPointer(kernel, i, reinterpret_cast<const void*>(a.address)) : CL_INVALID_ARG_VALUE;
  }
  if (__builtin_expect(a.offset > a.memory->bytes, 0)) return CL_INVALID_ARG_VALUE;
  if (a.memory->buffer == nullptr) return cl.clSetKernelArgSVMPointer(kernel, i, a.memory->address + a.offset);
  cl_mem buffer = a.memory->buffer;
  if (__builtin_expect(a.offset != 0, 0)) {
    if (a.offset % a.memory->device->chip->base_alignment != 0 || a.offset == a.memory->bytes) return CL_INVALID_ARG_VALUE;
    cl_int code = CL_SUCCESS;
    buffer = part_of(a.memory, a.offset, &code);
    if (!buffer) return code;
  }
  return cl.clSetKernelArg(kernel, i, sizeof buffer, &buffer);
}

}  // namespace

namespace slots {

flhal_status launch(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_launch_v1* l) {
  flhal_p_function& f = *l->function;
  if (__builtin_expect(l->next != nullptr, 0)) {
    if (flhal_status s = extensions(l->next, "launch"); s != FLHAL_OK) return s;
  }
  if (__builtin_expect(l->n_args != f.n_args, 0))
    return fail(FLHAL_E_INVALID, fmt::format("launch: {} takes {} arguments and got {}", f.name, f.n_args, l->n_args));
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = f.take(&code);
  if (__builtin_expect(!kernel, 0)) return fail_code(code, "launch", "clCreateKernel", f.name);
  for (uint32_t i = 0; i < l->n_args; ++i) {
    const flhal_p_arg& a = argument(l, i);
    switch (a.kind) {
      case FLHAL_ARG_MEMORY: code = set_memory(kernel, i, a); break;
      case FLHAL_ARG_VALUE: code = cl.clSetKernelArg(kernel, i, a.size, a.value); break;
      case FLHAL_ARG_LOCAL: code = cl.clSetKernelArg(kernel, i, a.size, nullptr); break;
      default: f.give(kernel); return refuse_argument(l, i, CL_SUCCESS);
    }
    if (__builtin_expect(code != CL_SUCCESS, 0)) {
      f.give(kernel);
      return refuse_argument(l, i, code);
    }
  }
  size_t global[3], local[3];
  for (int d = 0; d < 3; ++d) {
    local[d] = l->group_size[d] ? l->group_size[d] : 1;
    global[d] = l->groups[d] * local[d];
  }
  const cl_uint dimensions = global[2] != 1 ? 3 : global[1] != 1 ? 2 : 1;
  cl_event event = nullptr;
  const bool wants_event = stream == nullptr || stream->eager != 0;
  if (stream && wants_event) --stream->eager;
  code = cl.clEnqueueNDRangeKernel(queue_of(device, stream), kernel, dimensions, nullptr, global, local, 0, nullptr, wants_event ? &event : nullptr);
  if (__builtin_expect(code != CL_SUCCESS, 0)) {
    flhal_status refused = refuse_launch(l, kernel, code);
    f.give(kernel);
    return refused;
  }
  f.give(kernel);
  return queued(stream, CL_SUCCESS, event, "launch", "clEnqueueNDRangeKernel", false);
}

}  // namespace slots
}  // namespace flhal::opencl
