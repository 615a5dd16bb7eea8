// reference_plugins/opencl/code.cc: the table of codes.
#include "code.h"

#include <CL/cl_ext.h>
#include <fmt/format.h>

#include <atomic>

namespace flhal::opencl {
namespace {

struct Row {
  cl_int code;
  const char* name;
  flhal_status status;
};
#define ROW(code, status) {code, #code, status}
constexpr Row kRows[] = {
    ROW(CL_DEVICE_NOT_FOUND, FLHAL_E_NOT_FOUND),
    ROW(CL_DEVICE_NOT_AVAILABLE, FLHAL_E_DEVICE_LOST),
    ROW(CL_COMPILER_NOT_AVAILABLE, FLHAL_E_UNSUPPORTED),
    ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE, FLHAL_E_OUT_OF_MEMORY),
    ROW(CL_OUT_OF_RESOURCES, FLHAL_E_OP_FAILED),
    ROW(CL_OUT_OF_HOST_MEMORY, FLHAL_E_HOST_MEMORY),
    ROW(CL_PROFILING_INFO_NOT_AVAILABLE, FLHAL_E_UNSUPPORTED),
    ROW(CL_MEM_COPY_OVERLAP, FLHAL_E_INVALID),
    ROW(CL_BUILD_PROGRAM_FAILURE, FLHAL_E_BUILD),
    ROW(CL_MAP_FAILURE, FLHAL_E_OP_FAILED),
    ROW(CL_MISALIGNED_SUB_BUFFER_OFFSET, FLHAL_E_INVALID),
    ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, FLHAL_E_OP_FAILED),
    ROW(CL_COMPILE_PROGRAM_FAILURE, FLHAL_E_BUILD),
    ROW(CL_LINKER_NOT_AVAILABLE, FLHAL_E_UNSUPPORTED),
    ROW(CL_LINK_PROGRAM_FAILURE, FLHAL_E_BUILD),
    ROW(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, FLHAL_E_UNSUPPORTED),
    ROW(CL_INVALID_VALUE, FLHAL_E_INVALID),
    ROW(CL_INVALID_PLATFORM, FLHAL_E_DEVICE_LOST),       // these four name handles of ours that were good before:
    ROW(CL_INVALID_DEVICE, FLHAL_E_DEVICE_LOST),         // the driver threw them away, as after a reset of the chip
    ROW(CL_INVALID_CONTEXT, FLHAL_E_DEVICE_LOST),
    ROW(CL_INVALID_COMMAND_QUEUE, FLHAL_E_DEVICE_LOST),
    ROW(CL_INVALID_QUEUE_PROPERTIES, FLHAL_E_INVALID),
    ROW(CL_INVALID_HOST_PTR, FLHAL_E_INVALID),
    ROW(CL_INVALID_MEM_OBJECT, FLHAL_E_INVALID),
    ROW(CL_INVALID_BINARY, FLHAL_E_BUILD),
    ROW(CL_INVALID_BUILD_OPTIONS, FLHAL_E_BUILD),
    ROW(CL_INVALID_PROGRAM, FLHAL_E_INVALID),
    ROW(CL_INVALID_PROGRAM_EXECUTABLE, FLHAL_E_INVALID),
    ROW(CL_INVALID_KERNEL_NAME, FLHAL_E_NOT_FOUND),
    ROW(CL_INVALID_KERNEL_DEFINITION, FLHAL_E_BUILD),
    ROW(CL_INVALID_KERNEL, FLHAL_E_INVALID),
    ROW(CL_INVALID_ARG_INDEX, FLHAL_E_INVALID),
    ROW(CL_INVALID_ARG_VALUE, FLHAL_E_INVALID),
    ROW(CL_INVALID_ARG_SIZE, FLHAL_E_INVALID),
    ROW(CL_INVALID_KERNEL_ARGS, FLHAL_E_INVALID),
    ROW(CL_INVALID_WORK_DIMENSION, FLHAL_E_INVALID),
    ROW(CL_INVALID_WORK_GROUP_SIZE, FLHAL_E_INVALID),
    ROW(CL_INVALID_WORK_ITEM_SIZE, FLHAL_E_INVALID),
    ROW(CL_INVALID_GLOBAL_OFFSET, FLHAL_E_INVALID),
    ROW(CL_INVALID_EVENT_WAIT_LIST, FLHAL_E_INVALID),
    ROW(CL_INVALID_EVENT, FLHAL_E_INVALID),
    ROW(CL_INVALID_OPERATION, FLHAL_E_INVALID),
    ROW(CL_INVALID_BUFFER_SIZE, FLHAL_E_INVALID),
    ROW(CL_INVALID_GLOBAL_WORK_SIZE, FLHAL_E_INVALID),
    ROW(CL_INVALID_PROPERTY, FLHAL_E_INVALID),
    ROW(CL_INVALID_COMPILER_OPTIONS, FLHAL_E_BUILD),
    ROW(CL_INVALID_LINKER_OPTIONS, FLHAL_E_BUILD),
    ROW(CL_PLATFORM_NOT_FOUND_KHR, FLHAL_E_NOT_FOUND),
};
#undef ROW

const Row* row_of(cl_int code) {
  for (const Row& row : kRows)
    if (row.code == code) return &row;
  return nullptr;
}

std::atomic<const flhal_host_v1*> g_host{nullptr};

}  // namespace

std::string code_name(cl_int code) {
  const Row* row = row_of(code);
  return row ? fmt::format("{} ({})", row->name, code) : fmt::format("the code {}", code);
}

flhal_status status_of(cl_int code) {
  if (code >= 0) return FLHAL_OK;
  const Row* row = row_of(code);
  return row ? row->status : FLHAL_E_VENDOR_LAST + code;
}

bool is_exhaustion(cl_int code) {
  return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY ||
         code == CL_INVALID_BUFFER_SIZE;
}

void set_host(const flhal_host_v1* host) { g_host.store(host, std::memory_order_release); }
const flhal_host_v1* host() { return g_host.load(std::memory_order_acquire); }

flhal_status fail(flhal_status status, const std::string& text, cl_int code) {
  if (const flhal_host_v1* h = host(); h && h->set_error) h->set_error(status, code, ("opencl: " + text).c_str());
  return status;
}

flhal_status extensions(const void* next, const char* slot) {
  const uint32_t needed = flhal_needed_extension(next);
  if (needed == 0) return FLHAL_OK;
  return fail(FLHAL_E_UNSUPPORTED, fmt::format("{} needs the extension {:#x}, which this plugin does not know; install a newer plugin", slot, needed));
}

flhal_status fail_code(cl_int code, const char* doing, const char* call, const std::string& more) {
  return fail(status_of(code), fmt::format("{}: {} answered {}{}{}", doing, call, code_name(code), more.empty() ? "" : "; ", more), code);
}

}  // namespace flhal::opencl
