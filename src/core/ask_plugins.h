// src/core/ask_plugins.h: from candidates to descriptions, by the way each plugin needs: child, cache, or in this process.
#pragma once

#include <memory>
#include <vector>

#include "core/device_description.h"
#include "core/load_report.h"
#include "core/search_path.h"

namespace flhal {

// One usable plugin. `plugin->loaded` is false for those that were asked in a child only.
struct AskedPlugin {
  std::unique_ptr<Plugin> plugin;
  std::unique_ptr<PluginDescription> description;
};

// Adds one line per candidate to the report. The first usable plugin of an id wins.
std::vector<AskedPlugin> ask_plugins(const std::vector<Candidate>& candidates, LoadReport& report);

}  // namespace flhal
