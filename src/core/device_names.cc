// src/core/device_names.cc: order, names and the visibility filter of devices.
#include "core/device_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/config_values.h"

namespace flhal {
namespace {

// Classes in the order of preference; one that this core does not know goes last.
uint32_t class_rank(uint32_t device_class) { return device_class <= FLHAL_DEVICE_CLASS_MOCK ? device_class : FLHAL_DEVICE_CLASS_MOCK + 1; }

std::string hex_only(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '-') out += static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
  return out;
}

Refusal not_found(const std::vector<ListedDevice>& devices, const std::string& typed, std::string why) {
  std::string valid = devices.empty() ? "there is no device" : "the devices are " + name_list(devices);
  return refuse(FLHAL_E_NOT_FOUND, fmt::format("there is no device '{}'{}", typed, why), std::move(valid));
}

}  // namespace

std::vector<ListedDevice> list_devices(const std::vector<const PluginDescription*>& plugins) {
  std::vector<ListedDevice> all;
  for (const PluginDescription* plugin : plugins)
    for (uint32_t i = 0; i < plugin->devices.size(); ++i) all.push_back({plugin, i, "", 0, false});
  std::stable_sort(all.begin(), all.end(), [](const ListedDevice& a, const ListedDevice& b) {
    const DeviceDescription& x = a.description();
    const DeviceDescription& y = b.description();
    return std::make_tuple(class_rank(x.device_class), std::cref(a.plugin->id), std::cref(x.pci_address), std::cref(x.uuid), a.plugin_device) <
           std::make_tuple(class_rank(y.device_class), std::cref(b.plugin->id), std::cref(y.pci_address), std::cref(y.uuid), b.plugin_device);
  });
  std::map<std::string, std::set<std::string>> makers;     // chip name -> plugin ids
  std::map<std::pair<std::string, std::string>, uint32_t> ordinals;
  for (const ListedDevice& device : all) makers[device.description().chip].insert(device.plugin->id);
  for (ListedDevice& device : all) {
    const std::string& chip = device.description().chip;
    device.ordinal = ordinals[{device.plugin->id, chip}]++;
    device.shared_chip_name = makers[chip].size() > 1;
    device.name = device.shared_chip_name ? device.plugin->id + "/" + chip : chip;
    if (device.ordinal != 0) device.name += fmt::format(":{}", device.ordinal);
  }
  return all;
}

std::string name_list(const std::vector<ListedDevice>& devices) {
  std::string text;
  for (const ListedDevice& device : devices) text += (text.empty() ? "" : ", ") + device.name;
  return text;
}

Refusal find_listed(const std::vector<ListedDevice>& devices, const std::string& text, uint32_t* out_index) {
  const std::string typed(trimmed(text));
  auto take = [&](size_t i) {
    *out_index = static_cast<uint32_t>(i);
    return Refusal();
  };
  if (!typed.empty() && typed.find_first_not_of("0123456789") == std::string::npos) {
    auto index = parse_integer(typed, 0, UINT32_MAX);
    if (index && *index < devices.size()) return take(*index);
    return not_found(devices, typed, fmt::format(": {} devices are visible, counted from 0", devices.size()));
  }
  if (typed.rfind("uuid:", 0) == 0) {
    const std::string wanted = hex_only(std::string_view(typed).substr(5));
    std::vector<size_t> hits;
    for (size_t i = 0; i < devices.size(); ++i)
      if (uuid_known(devices[i].description().uuid) && uuid_text(devices[i].description().uuid) == wanted) hits.push_back(i);
    if (hits.size() == 1) return take(hits[0]);
    if (hits.size() > 1)
      return refuse(FLHAL_E_INVALID, fmt::format("'{}' is one chip behind {} plugins", typed, hits.size()),
                    fmt::format("name it by plugin: {} or {}", devices[hits[0]].name, devices[hits[1]].name));
    std::string valid;
    for (const ListedDevice& device : devices)
      if (uuid_known(device.description().uuid)) valid += fmt::format("{}uuid:{} ({})", valid.empty() ? "" : ", ", uuid_text(device.description().uuid), device.name);
    return refuse(FLHAL_E_NOT_FOUND, fmt::format("there is no device '{}'", typed), valid.empty() ? "no device has a uuid" : "the uuids are " + valid);
  }
  // [plugin/]chip[:ordinal]
  std::string_view rest = typed;
  std::string_view plugin;
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    plugin = rest.substr(0, slash);
    if (plugin.empty()) return not_found(devices, typed, "");
    rest = rest.substr(slash + 1);
  }
  uint64_t ordinal = 0;
  if (size_t colon = rest.find(':'); colon != std::string_view::npos) {
    auto number = parse_integer(rest.substr(colon + 1), 0, UINT32_MAX);
    if (!number) return not_found(devices, typed, "");
    ordinal = *number;
    rest = rest.substr(0, colon);
  }
  std::set<std::string> makers;
  size_t hit = devices.size();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].description().chip != rest || (!plugin.empty() && devices[i].plugin->id != plugin)) continue;
    if (plugin.empty() && devices[i].shared_chip_name) makers.insert(devices[i].plugin->id);
    if (devices[i].ordinal == ordinal && hit == devices.size()) hit = i;
  }
  if (!makers.empty()) {
    std::string ways;
    for (const ListedDevice& device : devices)
      if (device.description().chip == rest) ways += (ways.empty() ? "" : ", ") + device.name;
    return refuse(FLHAL_E_INVALID, fmt::format("several plugins have a chip called '{}'", std::string(rest)), "say which: " + ways);
  }
  if (hit < devices.size()) return take(hit);
  return not_found(devices, typed, "");
}

Refusal filter_visible(const std::vector<ListedDevice>& all, const std::string& visible, std::vector<ListedDevice>* out) {
  const std::string_view value = trimmed(visible);
  out->clear();
  if (value.empty()) {
    *out = all;
    return {};
  }
  if (value == "none") return {};
  std::vector<ListedDevice> chosen;
  std::set<uint32_t> taken;
  size_t start = 0;
  while (start <= value.size()) {
    size_t end = std::min(value.find(',', start), value.size());
    std::string_view part = trimmed(value.substr(start, end - start));
    start = end + 1;
    if (part.empty()) continue;
    uint32_t index = 0;
    Refusal refusal = find_listed(all, std::string(part), &index);
    if (refusal) return refusal;
    if (!taken.insert(index).second)
      return refuse(FLHAL_E_INVALID, fmt::format("'{}' names {} a second time", part, all[index].name), "name each device once");
    chosen.push_back(all[index]);
  }
  *out = std::move(chosen);
  return {};
}

}  // namespace flhal
