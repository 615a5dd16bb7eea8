// src/core/devices_json.cc: the report "devices".
#include <flhal/plugin.h>

#include "core/discovery.h"
#include "core/json_text.h"

namespace flhal {
namespace {

std::string dtype_name(flhal_dtype dtype) {
  constexpr struct {
    flhal_dtype dtype;
    const char* name;
  } kNames[] = {{FLHAL_I8, "i8"},     {FLHAL_I16, "i16"},   {FLHAL_I32, "i32"},   {FLHAL_I64, "i64"},  {FLHAL_U8, "u8"},
                {FLHAL_U16, "u16"},   {FLHAL_U32, "u32"},   {FLHAL_U64, "u64"},   {FLHAL_F16, "f16"},  {FLHAL_F32, "f32"},
                {FLHAL_F64, "f64"},   {FLHAL_BF16, "bf16"}, {FLHAL_C32, "c32"},   {FLHAL_C64, "c64"},  {FLHAL_C128, "c128"},
                {FLHAL_BOOL, "bool"}, {FLHAL_F8_E4M3FN, "f8_e4m3fn"}, {FLHAL_F8_E4M3FNUZ, "f8_e4m3fnuz"},
                {FLHAL_F8_E5M2, "f8_e5m2"}, {FLHAL_F8_E5M2FNUZ, "f8_e5m2fnuz"}};
  for (const auto& row : kNames)
    if (row.dtype == dtype) return row.name;
  return fmt::format("{:#x}", dtype);
}

const char* class_name(uint32_t device_class) {
  constexpr const char* kNames[] = {"accelerator", "gpu", "host", "cpu_driver", "mock"};
  return device_class < 5 ? kNames[device_class] : "unknown";
}

const char* state_name(uint32_t state) {
  return state == FLHAL_DEVICE_STATE_OPEN ? "open" : state == FLHAL_DEVICE_STATE_LOST ? "lost" : "closed";
}

}  // namespace

std::string devices_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "devices");
  cJSON* list = cJSON_AddArrayToObject(root.get(), "devices");
  for (const Device* device : devices()) {
    const flhal_p_device_info_v1& info = device->info;
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add_number(item, "index", device->index);
    json_add(item, "name", device->name);
    json_add(item, "chip", info.chip);
    json_add(item, "plugin", device->plugin->id);
    json_add(item, "plugin_version", device->plugin->version);
    json_add(item, "product", info.product);
    json_add(item, "vendor", info.vendor);
    json_add(item, "driver", info.driver);
    json_add(item, "compute_capability", info.compute_capability);
    json_add(item, "pci_address", info.pci_address);
    std::array<uint8_t, 16> uuid;
    std::copy(info.uuid, info.uuid + 16, uuid.begin());
    json_add(item, "uuid", uuid_known(uuid) ? uuid_text(uuid) : "");
    json_add(item, "class", class_name(info.device_class));
    json_add(item, "state", state_name(device->state.load(std::memory_order_acquire)));
    json_add_number(item, "memory_bytes", info.memory_bytes);
    json_add_number(item, "largest_allocation_bytes", info.largest_slab_bytes);
    json_add(item, "dialects", info.dialects);
    json_add_number(item, "queues", info.queues);
    json_add_bool(item, "is_asynchronous", device->plugin->has_streams);
    json_add_bool(item, "has_ops", device->plugin->has_ops);
    json_add_bool(item, "has_kernels", device->plugin->has_kernels);
    cJSON* dtypes = cJSON_AddArrayToObject(item, "storage_dtypes");   // empty: all
    for (flhal_dtype dtype : device->storage_dtypes) cJSON_AddItemToArray(dtypes, cJSON_CreateString(dtype_name(dtype).c_str()));
    constexpr struct {
      uint64_t bit;
      const char* name;
    } kCaps[] = {{FLHAL_CAP_ADDRESSES, "addresses"}, {FLHAL_CAP_ADDRESSES_OURS, "addresses_ours"}, {FLHAL_CAP_HOST_VISIBLE, "host_visible"},
                 {FLHAL_CAP_HOST_COHERENT, "host_coherent"}, {FLHAL_CAP_FP64, "fp64"}, {FLHAL_CAP_INT64, "int64"},
                 {FLHAL_CAP_COMPUTE_COPY_OVERLAP, "compute_copy_overlap"}, {FLHAL_CAP_EVENT_HOST_SIGNAL, "event_host_signal"},
                 {FLHAL_CAP_LANES_ARE_CORES, "lanes_are_cores"}};
    cJSON* caps = cJSON_AddArrayToObject(item, "caps");
    for (const auto& row : kCaps)
      if (device->has(row.bit)) cJSON_AddItemToArray(caps, cJSON_CreateString(row.name));
  }
  return json_print(root.get(), true);
}

}  // namespace flhal
