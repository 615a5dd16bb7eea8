// src/api/device.cc: the exports of flhal/device.h.
#include <flhal/device.h>

#include <cstring>

#include "api/api_call.h"
#include "core/device.h"
#include "core/discovery.h"
#include "core/fork_guard.h"
#include "core/stream.h"

using namespace flhal;

static flhal_device_info info_of(const Device& device) {
  const flhal_p_device_info_v1& from = device.info;
  flhal_device_info to{};
  to.index = device.index;
  to.name = device.name.c_str();
  to.chip = from.chip;
  to.plugin = device.plugin->id.c_str();
  to.product = from.product;
  to.vendor = from.vendor;
  to.driver = from.driver;
  to.plugin_version = device.plugin->version.c_str();
  to.compute_capability = from.compute_capability;
  to.pci_address = from.pci_address;
  to.dialects = from.dialects;
  std::memcpy(to.uuid, from.uuid, sizeof to.uuid);
  to.caps = from.caps;
  to.memory_bytes = from.memory_bytes;
  to.largest_allocation_bytes = from.largest_slab_bytes;
  to.storage_dtypes = from.storage_dtypes;
  to.n_storage_dtypes = from.n_storage_dtypes;
  to.device_class = from.device_class;
  to.state = device.state.load(std::memory_order_acquire);
  to.queues = from.queues;
  to.is_asynchronous = device.plugin->has_streams;
  to.dlpack_device_type = from.dlpack_device_type;
  to.has_ops = device.plugin->has_ops;
  to.has_kernels = device.plugin->has_kernels;
  return to;
}

extern "C" {

flhal_status flhal_plugin_add(const char* path) {
  return api_call(__func__, [&]() -> Status {
    if (forked()) return forked_failure("flhal_plugin_add");
    if (path == nullptr) return fail(FLHAL_E_INVALID, "flhal_plugin_add: path is NULL");
    return add_plugin_path(path);
  });
}

uint32_t flhal_device_count(void) {
  uint32_t count = 0;
  api_call(__func__, [&]() -> Status {
    count = static_cast<uint32_t>(devices().size());
    return count == 0 && !forked() ? fail_text(FLHAL_E_NOT_FOUND, not_found_text()) : Status();
  });
  return count;
}

flhal_device* flhal_device_at(uint32_t index) {
  flhal_device* found = nullptr;
  api_call(__func__, [&]() -> Status {
    if (forked()) return forked_failure("flhal_device_at");
    if (g_shut_down.load(std::memory_order_acquire)) return shut_down_failure("flhal_device_at");
    const auto& all = devices();
    if (all.empty()) return fail_text(FLHAL_E_NOT_FOUND, not_found_text());
    if (index >= all.size())
      return fail(FLHAL_E_NOT_FOUND, "flhal_device_at: there is no device {}: {} {} found, counted from 0", index, all.size(), all.size() == 1 ? "device was" : "devices were");
    found = handle_of(all[index]);
    return FLHAL_OK;
  });
  return found;
}

flhal_status flhal_device_find(const char* name, uint32_t* out_index) {
  return api_call(__func__, [&]() -> Status {
    if (forked()) return forked_failure("flhal_device_find");
    if (name == nullptr || out_index == nullptr) return fail(FLHAL_E_INVALID, "flhal_device_find: {} is NULL", name ? "out_index" : "name");
    return find_device(name, out_index);
  });
}

flhal_status flhal_device_get_info(flhal_device* device, flhal_device_info* out_info) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_device_get_info"));
    if (out_info == nullptr || out_info->struct_size < sizeof(uint32_t))
      return fail(FLHAL_E_INVALID, "flhal_device_get_info: out_info {}; set out_info->struct_size = sizeof(flhal_device_info)",
                  out_info ? "says it has no size" : "is NULL");
    const uint32_t theirs = out_info->struct_size;
    flhal_device_info info = info_of(*device_from(device));
    info.struct_size = theirs;
    std::memcpy(out_info, &info, theirs < sizeof info ? theirs : sizeof info);
    return FLHAL_OK;
  });
}

flhal_status flhal_device_open(flhal_device* device) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_device_open"));
    return device_from(device)->open();
  });
}

flhal_status flhal_device_synchronize(flhal_device* device) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_device_synchronize"));
    Device* d = device_from(device);
    if (d->state.load(std::memory_order_acquire) == FLHAL_DEVICE_STATE_CLOSED) return FLHAL_OK;  // never opened: no work
    return synchronize_device(d);
  });
}

flhal_status flhal_device_reset_error(flhal_device* device) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_device_reset_error"));
    return device_from(device)->reset();
  });
}

}  // extern "C"
