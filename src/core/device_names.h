// src/core/device_names.h: order, names and the visibility filter of devices; pure functions over descriptions.
#pragma once

#include <string>
#include <vector>

#include "core/device_description.h"
#include "core/refusal.h"

namespace flhal {

// A device before it becomes one: whose it is, and what it is called.
struct ListedDevice {
  const PluginDescription* plugin = nullptr;
  uint32_t plugin_device = 0;
  std::string name;              // unique: "chip", "chip:1", "plugin/chip", "plugin/chip:1"
  uint32_t ordinal = 0;          // among the devices of the same plugin and chip name
  bool shared_chip_name = false; // another plugin has a chip of this name: the bare name is refused

  const DeviceDescription& description() const { return plugin->devices[plugin_device]; }
};

// All devices of all plugins in the frozen order, named: class (accelerator, GPU, host, processor behind another driver,
// mock, unknown), plugin id, PCI address, uuid, the plugin's own index.
std::vector<ListedDevice> list_devices(const std::vector<const PluginDescription*>& plugins);

// What a user typed, to a position in `devices`. "chip", "chip:0", "chip:1", "plugin/chip", "plugin/chip:1",
// "uuid:<32 hex digits, hyphens ignored>", "2". FLHAL_E_NOT_FOUND lists the valid names, FLHAL_E_INVALID is an ambiguous one.
Refusal find_listed(const std::vector<ListedDevice>& devices, const std::string& typed, uint32_t* out_index);

// The value of visible_devices: filters and orders. "" = all, "none" = none. On a refusal *out is empty.
Refusal filter_visible(const std::vector<ListedDevice>& all, const std::string& visible, std::vector<ListedDevice>* out);

std::string name_list(const std::vector<ListedDevice>& devices);

}  // namespace flhal
