// reference_plugins/opencl/device.cc: counting, info, open, close, budget.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "../host/machine.h"
#include "opencl_plugin.h"
#include "surroundings.h"

namespace flhal::opencl {
namespace {

// Drivers tell here what went wrong behind a queue, from any thread of theirs.
void CL_CALLBACK driver_says(const char* text, const void*, size_t, void*) {
  if (const flhal_host_v1* h = host(); h && h->log) h->log(1, (std::string("opencl: the driver says: ") + (text ? text : "")).c_str());
}

flhal_status no_such_chip(uint32_t index, size_t n, const char* slot) {
  return fail(FLHAL_E_INVALID, fmt::format("{}: there is no device {}; there are {}, counted from 0", slot, index, n));
}

}  // namespace

namespace slots {

flhal_status device_count(flhal_p_plugin* plugin, uint32_t* out) {
  *out = static_cast<uint32_t>(plugin->chips.size());
  return FLHAL_OK;
}

flhal_status device_info(flhal_p_plugin* plugin, uint32_t index, flhal_p_device_info_v1* out) {
  if (index >= plugin->chips.size()) return no_such_chip(index, plugin->chips.size(), "device_info");
  const flhal_p_device_info_v1& info = plugin->chips[index].info;
  // Write only as much as core's struct has, and leave its head (struct_size, struct_type, next) alone.
  constexpr size_t head = offsetof(flhal_p_device_info_v1, uuid);
  const size_t end = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
  if (end > head) std::memcpy(reinterpret_cast<char*>(out) + head, reinterpret_cast<const char*>(&info) + head, end - head);
  return FLHAL_OK;
}

flhal_status device_open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
  if (index >= plugin->chips.size()) return no_such_chip(index, plugin->chips.size(), "device_open");
  return no_throw("device_open", [&]() -> flhal_status {
    KeepSurroundings keep;
    const Chip& chip = plugin->chips[index];
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(chip.platform), 0};
    cl_int code = CL_SUCCESS;
    cl_context context = cl.clCreateContext(properties, 1, &chip.device, driver_says, nullptr, &code);
    if (!context) return fail_code(code, "device_open", "clCreateContext", chip.product);
    cl_command_queue queue = cl.clCreateCommandQueue(context, chip.device, 0, &code);
    if (!queue) {
      cl.clReleaseContext(context);
      return fail_code(code, "device_open", "clCreateCommandQueue", chip.product);
    }
    *out = new flhal_p_device{&chip, context, queue};
    return FLHAL_OK;
  });
}

void device_close(flhal_p_device* device) {
  cl.clReleaseCommandQueue(device->immediate);
  cl.clReleaseContext(device->context);
  delete device;
}

// OpenCL cannot tell what is free: what we took is subtracted, and a chip in the host's memory has no more than the host.
flhal_status memory_budget(flhal_p_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return no_throw("memory_budget", [&]() -> flhal_status {
    uint64_t total = device->chip->info.memory_bytes, used = device->used_bytes.load(std::memory_order_relaxed);
    uint64_t left = total > used ? total - used : 0;
    if (device->chip->unified) left = std::min(left, flhal::host::available_memory());
    *free_bytes = left;
    *total_bytes = total;
    return FLHAL_OK;
  });
}

}  // namespace slots
}  // namespace flhal::opencl
