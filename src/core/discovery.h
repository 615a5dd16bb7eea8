// src/core/discovery.h: the first count: search, ask, order, name, filter, freeze.
//
// Threads: one mutex; the first caller does the work, later ones read an atomic pointer. After that nothing changes but
// the states of the devices and the notes of the report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/device_names.h"
#include "core/load_report.h"
#include "core/search_path.h"

namespace flhal {

struct Discovery {
  std::vector<std::unique_ptr<PluginDescription>> descriptions;
  std::vector<std::unique_ptr<Plugin>> plugins;      // the same order
  std::vector<ListedDevice> listed;                  // the same order as devices
  std::vector<Device*> devices;
  LoadReport report;
  std::string error;                                 // why there is no device, when a setting is to blame; "" otherwise
};

// The frozen result; makes it on first use.
const Discovery& discovery();

// flhal_plugin_add: before the first count only.
Status add_plugin_path(const std::string& path);

// flhal_device_find.
Status find_device(const std::string& name, uint32_t* out_index);

// For tests: discovery over a given search, which nothing else sees.
std::unique_ptr<Discovery> discover(const SearchInput& input, const std::string& visible_devices);

// Shuts every device and plugin down; see flhal_shutdown.
Status shut_down_all();

}  // namespace flhal
