// src/core/description_json.cc: a plugin's description as JSON, there and back.
#include "core/description_json.h"

#include <algorithm>

#include "core/manifest.h"

namespace flhal {
namespace {

// The text fields of a device, once: name in JSON and member.
constexpr struct {
  const char* key;
  std::string DeviceDescription::*member;
} kTexts[] = {{"chip", &DeviceDescription::chip}, {"product", &DeviceDescription::product}, {"vendor", &DeviceDescription::vendor},
              {"driver", &DeviceDescription::driver}, {"compute_capability", &DeviceDescription::compute_capability},
              {"pci_address", &DeviceDescription::pci_address}, {"fingerprint", &DeviceDescription::fingerprint},
              {"dialects", &DeviceDescription::dialects}};
constexpr struct {
  const char* key;
  uint64_t DeviceDescription::*member;
} kNumbers[] = {{"caps", &DeviceDescription::caps}, {"memory_bytes", &DeviceDescription::memory_bytes},
                {"largest_slab_bytes", &DeviceDescription::largest_slab_bytes}, {"slab_alignment", &DeviceDescription::slab_alignment}};
constexpr struct {
  const char* key;
  uint32_t DeviceDescription::*member;
} kSmallNumbers[] = {{"queues", &DeviceDescription::queues}, {"preferred_vector_bytes", &DeviceDescription::preferred_vector_bytes},
                     {"max_local_bytes", &DeviceDescription::max_local_bytes}, {"dlpack_device_type", &DeviceDescription::dlpack_device_type},
                     {"device_class", &DeviceDescription::device_class}};
constexpr struct {
  const char* key;
  bool PluginDescription::*member;
} kFlags[] = {{"has_ops", &PluginDescription::has_ops}, {"has_kernels", &PluginDescription::has_kernels},
              {"has_streams", &PluginDescription::has_streams}, {"has_host_access", &PluginDescription::has_host_access},
              {"has_budget", &PluginDescription::has_budget}};

bool uuid_from_text(const std::string& text, std::array<uint8_t, 16>* out) {
  if (text.size() != 32) return false;
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    (*out)[i / 2] = static_cast<uint8_t>((*out)[i / 2] << 4 | digit);
  }
  return true;
}

}  // namespace

JsonOwner description_to_json(const PluginDescription& plugin) {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "id", plugin.id);
  json_add(root.get(), "version", plugin.version);
  json_add(root.get(), "build_id", plugin.build_id);
  json_add(root.get(), "vendor", plugin.vendor);
  json_add(root.get(), "loaded_path", plugin.loaded_path);
  json_add_number(root.get(), "abi_minor", plugin.abi_minor);
  json_add_number(root.get(), "flags", plugin.flags);
  for (const auto& row : kFlags) json_add_bool(root.get(), row.key, plugin.*row.member);
  cJSON* notes = cJSON_AddArrayToObject(root.get(), "notes");
  for (const std::string& note : plugin.notes) cJSON_AddItemToArray(notes, cJSON_CreateString(note.c_str()));
  cJSON* list = cJSON_AddArrayToObject(root.get(), "devices");
  for (const DeviceDescription& device : plugin.devices) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "uuid", uuid_text(device.uuid));
    for (const auto& row : kTexts) json_add(item, row.key, device.*row.member);
    for (const auto& row : kNumbers) json_add_number(item, row.key, device.*row.member);
    for (const auto& row : kSmallNumbers) json_add_number(item, row.key, device.*row.member);
    cJSON* dtypes = cJSON_AddArrayToObject(item, "storage_dtypes");
    for (flhal_dtype dtype : device.storage_dtypes) cJSON_AddItemToArray(dtypes, cJSON_CreateNumber(dtype));
  }
  return root;
}

Refusal description_from_json(const cJSON* root, PluginDescription* out) {
  auto garbled = [](const char* what) { return refuse(FLHAL_E_INTERNAL, fmt::format("the answer of the probe is garbled: {}", what), "report it"); };
  PluginDescription plugin;
  plugin.id = json_string(root, "id");
  if (!valid_plugin_id(plugin.id)) return garbled("no plugin id");
  plugin.version = clean_text(json_string(root, "version").c_str());
  plugin.build_id = clean_text(json_string(root, "build_id").c_str());
  plugin.vendor = clean_text(json_string(root, "vendor").c_str());
  plugin.loaded_path = json_string(root, "loaded_path");
  plugin.abi_minor = static_cast<uint32_t>(json_number(root, "abi_minor"));
  plugin.flags = static_cast<uint32_t>(json_number(root, "flags"));
  for (const auto& row : kFlags) plugin.*row.member = json_bool(root, row.key);
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "notes")) {
    if (cJSON_IsString(item) && plugin.notes.size() < 64) plugin.notes.push_back(clean_text(item->valuestring));
  }
  const cJSON* list = cJSON_GetObjectItemCaseSensitive(root, "devices");
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > static_cast<int>(kDevicesMax)) return garbled("no list of devices");
  cJSON_ArrayForEach(item, list) {
    DeviceDescription device;
    if (!uuid_from_text(json_string(item, "uuid"), &device.uuid)) return garbled("a uuid");
    for (const auto& row : kTexts) device.*row.member = clean_text(json_string(item, row.key).c_str());
    for (const auto& row : kNumbers) device.*row.member = json_number(item, row.key);
    for (const auto& row : kSmallNumbers) device.*row.member = static_cast<uint32_t>(json_number(item, row.key));
    const cJSON* dtype;
    cJSON_ArrayForEach(dtype, cJSON_GetObjectItemCaseSensitive(item, "storage_dtypes")) {
      if (cJSON_IsNumber(dtype) && dtype->valuedouble >= 0 && dtype->valuedouble < 4294967296.0 && device.storage_dtypes.size() < 256)
        device.storage_dtypes.push_back(static_cast<flhal_dtype>(dtype->valuedouble));
    }
    FLHAL_REFUSE_ON(check_description(fmt::format("plugin {}: device {}", plugin.id, plugin.devices.size()), device));
    plugin.devices.push_back(std::move(device));
  }
  *out = std::move(plugin);
  return {};
}

}  // namespace flhal
