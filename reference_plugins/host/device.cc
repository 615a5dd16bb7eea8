// reference_plugins/host/device.cc: one device, the processor this process runs on.
//
// Nothing here starts a thread or touches oneDNN: FLHAL_PLUGIN_FORK_SAFE_PROBE is a promise.
#include "host_plugin.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

namespace flhal::host {
namespace {

constexpr flhal_dtype kStorageDtypes[] = {
    FLHAL_I8,  FLHAL_I16, FLHAL_I32, FLHAL_I64, FLHAL_U8,  FLHAL_U16,  FLHAL_U32,  FLHAL_U64,        FLHAL_F16,       FLHAL_F32,
    FLHAL_F64, FLHAL_BF16, FLHAL_C32, FLHAL_C64, FLHAL_C128, FLHAL_BOOL, FLHAL_F8_E4M3FN, FLHAL_F8_E4M3FNUZ,
    FLHAL_F8_E5M2, FLHAL_F8_E5M2FNUZ};

constexpr uint64_t kSlabAlignment = 64 * 1024;   // core's address map has granules of this size

}  // namespace

flhal_status fail(const flhal_p_plugin* plugin, flhal_status status, const std::string& text) {
  if (plugin && plugin->host && plugin->host->set_error) plugin->host->set_error(status, 0, text.c_str());
  return status;
}

flhal_status needs_extension(const flhal_host_v1* host, const char* slot, uint32_t type) {
  if (host && host->set_error)
    host->set_error(FLHAL_E_UNSUPPORTED, 0, fmt::format("host: {} needs the extension {:#x}, which this plugin does not know; install a newer plugin", slot, type).c_str());
  return FLHAL_E_UNSUPPORTED;
}

flhal_status plugin_init(const flhal_host_v1* host, const flhal_init_v1* start, flhal_p_plugin** out) {
  if (uint32_t needed = start ? flhal_needed_extension(start->next) : 0) return needs_extension(host, "init", needed);
  try {
    *out = new flhal_p_plugin{host, read_machine()};
    return FLHAL_OK;
  } catch (const std::exception& e) {
    if (host && host->set_error)
      host->set_error(FLHAL_E_INTERNAL, 0, fmt::format("host: reading the machine's facts failed: {}", e.what()).c_str());
    return FLHAL_E_INTERNAL;
  }
}

void plugin_shutdown(flhal_p_plugin* plugin) { delete plugin; }

flhal_status device_count(flhal_p_plugin*, uint32_t* out) {
  *out = 1;
  return FLHAL_OK;
}

flhal_status device_info(flhal_p_plugin* plugin, uint32_t index, flhal_p_device_info_v1* out) {
  if (index != 0) return fail(plugin, FLHAL_E_INVALID, fmt::format("host: there is no device {}; the one device is 0", index));
  const Machine& m = plugin->machine;
  flhal_p_device_info_v1 info{};
  std::memcpy(info.uuid, m.uuid, sizeof info.uuid);
  info.chip = "host";
  info.product = m.product.c_str();
  info.vendor = m.vendor.c_str();
  info.driver = m.driver.c_str();
  info.compute_capability = "";
  info.pci_address = "";
  info.fingerprint = m.fingerprint.c_str();
  info.dialects = FLHAL_DIALECT_HOST " " FLHAL_DIALECT_HOST_ELF;
  info.caps = FLHAL_CAP_ADDRESSES | FLHAL_CAP_ADDRESSES_OURS | FLHAL_CAP_HOST_VISIBLE | FLHAL_CAP_HOST_COHERENT |
              FLHAL_CAP_FP64 | FLHAL_CAP_INT64 | FLHAL_CAP_LANES_ARE_CORES;
  info.memory_bytes = m.memory_bytes;
  info.largest_slab_bytes = m.memory_bytes;
  info.slab_alignment = kSlabAlignment;
  info.queues = 1;
  info.preferred_vector_bytes = m.vector_bytes;
  info.dlpack_device_type = 1;   // kDLCPU: the bytes are ordinary host memory
  info.storage_dtypes = kStorageDtypes;
  info.n_storage_dtypes = sizeof kStorageDtypes / sizeof *kStorageDtypes;
  info.device_class = FLHAL_DEVICE_CLASS_HOST;

  // Write only as much as core's struct has, and leave its head (struct_size, struct_type, next) alone.
  constexpr size_t head = offsetof(flhal_p_device_info_v1, uuid);
  const size_t end = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
  if (end > head) std::memcpy(reinterpret_cast<char*>(out) + head, reinterpret_cast<const char*>(&info) + head, end - head);
  return FLHAL_OK;
}

flhal_status device_open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
  if (index != 0) return fail(plugin, FLHAL_E_INVALID, fmt::format("host: there is no device {}; the one device is 0", index));
  *out = new (std::nothrow) flhal_p_device{plugin};
  return *out ? FLHAL_OK : fail(plugin, FLHAL_E_HOST_MEMORY, "host: no memory for the device object");
}

void device_close(flhal_p_device* device) { delete device; }

}  // namespace flhal::host
