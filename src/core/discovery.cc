// src/core/discovery.cc: the first count of the process.
#include "core/discovery.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/ask_plugins.h"
#include "core/fork_guard.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/misspelt.h"

namespace flhal {
namespace {

// Never destroyed: devices live as long as the process, and nothing may happen in static destructors.
std::mutex& g_mutex = *new std::mutex;
std::vector<std::string>& g_added = *new std::vector<std::string>;   // guarded by g_mutex
std::atomic<Discovery*> g_found{nullptr};

Device* make_device(const ListedDevice& listed, Plugin* plugin, uint32_t index) {
  auto* device = new Device;
  const DeviceDescription& d = listed.description();
  device->index = index;
  device->name = listed.name;
  device->plugin = plugin;
  device->plugin_device = listed.plugin_device;
  device->storage_dtypes = d.storage_dtypes;
  device->info_strings = {d.chip, d.product, d.vendor, d.driver, d.compute_capability, d.pci_address, d.fingerprint, d.dialects};
  flhal_p_device_info_v1& info = device->info;
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_DEVICE_INFO;
  std::memcpy(info.uuid, d.uuid.data(), sizeof info.uuid);
  const auto& s = device->info_strings;
  info.chip = s[0].c_str();
  info.product = s[1].c_str();
  info.vendor = s[2].c_str();
  info.driver = s[3].c_str();
  info.compute_capability = s[4].c_str();
  info.pci_address = s[5].c_str();
  info.fingerprint = s[6].c_str();
  info.dialects = s[7].c_str();
  info.caps = d.caps;
  info.memory_bytes = d.memory_bytes;
  info.largest_slab_bytes = d.largest_slab_bytes;
  info.slab_alignment = d.slab_alignment;
  info.queues = d.queues;
  info.preferred_vector_bytes = d.preferred_vector_bytes;
  info.max_local_bytes = d.max_local_bytes;
  info.dlpack_device_type = d.dlpack_device_type;
  info.storage_dtypes = device->storage_dtypes.empty() ? nullptr : device->storage_dtypes.data();
  info.n_storage_dtypes = static_cast<uint32_t>(device->storage_dtypes.size());
  info.device_class = d.device_class;
  return device;
}

// Settings that name devices: a name that does not exist is an error that lists the valid ones.
void check_named_settings(Discovery& found) {
  std::vector<std::pair<std::string, std::string>> named;   // who says it, name
  if (std::string name = config_text("device"); !name.empty()) named.emplace_back(config_source("device"), name);
  for (const std::string& name : config_pool_limit_devices()) named.emplace_back("memory_pool_size@" + name, name);
  for (const auto& [source, name] : named) {
    uint32_t index = 0;
    if (Refusal refusal = find_listed(found.listed, name, &index)) {
      found.report.notes.push_back({"error", source, fmt::format("{}: {}", source, refusal.reason), refusal.remedy});
      log(kLogWarn, "{}: {}", source, refusal.sentence());
    }
  }
}

// A variable that is nearly one of ours has no effect; whoever set it should hear so.
void check_variable_names(Discovery& found) {
  std::vector<std::string> known = config_variables();
  for (const char* name : {"FLHAL_PLUGIN_FILES", "TORCH_FL_PLUGIN_FILES", "FLHAL_ADD_PLUGIN_FILES", "TORCH_FL_ADD_PLUGIN_FILES", "FLHAL_PROBE_HELPER"}) known.push_back(name);
  for (const auto& [name, meant] : misspelt_variables(environ, known)) {
    found.report.notes.push_back({"error", name, fmt::format("the environment variable {} is not read by flhal", name), fmt::format("{} was probably meant", meant)});
    log(kLogWarn, "the environment variable {} is not read by flhal; {} was probably meant", name, meant);
  }
}

Discovery* first_count() {
  auto failed = [](const char* what) {
    auto* empty = new Discovery;
    empty->error = fmt::format("looking for plugins failed: {}", what);
    empty->report.notes.push_back({"error", "discovery", empty->error, "report it"});
    return empty;
  };
  try {
    // A bad setting must not make the count fail: its default is in force, and the report has the line.
    Status settings = config_load();
    std::string settings_text = settings.ok() ? "" : last_error_text();
    std::unique_ptr<Discovery> found = discover(search_input(g_added), config_text("visible_devices"));
    if (!settings_text.empty()) {
      found->report.notes.push_back({"error", "settings", settings_text, "correct or unset the variable"});
      log(kLogError, "{}", settings_text);
    }
    check_named_settings(*found);
    check_variable_names(*found);
    config_freeze_discovery();
    return found.release();
  } catch (const std::exception& e) {
    return failed(e.what());
  } catch (...) {
    return failed("an unknown exception");
  }
}

}  // namespace

std::unique_ptr<Discovery> discover(const SearchInput& input, const std::string& visible_devices) {
  const auto start = std::chrono::steady_clock::now();
  auto found = std::make_unique<Discovery>();
  std::vector<Candidate> candidates = find_candidates(input, found->report);
  std::vector<const PluginDescription*> descriptions;
  for (AskedPlugin& asked : ask_plugins(candidates, found->report)) {
    descriptions.push_back(asked.description.get());
    found->descriptions.push_back(std::move(asked.description));
    found->plugins.push_back(std::move(asked.plugin));
  }
  const std::vector<ListedDevice> all = list_devices(descriptions);
  if (Refusal refusal = filter_visible(all, visible_devices, &found->listed)) {
    found->error = fmt::format("visible_devices='{}': {}", visible_devices, refusal.sentence());
    found->report.notes.push_back({"error", "visible_devices", fmt::format("visible_devices='{}': {}; until it is corrected no device is visible",
                                   visible_devices, refusal.reason), refusal.remedy});
    log(kLogError, "{}", found->error);
  } else if (found->listed.empty() && !all.empty()) {
    found->error = fmt::format("visible_devices='{}' hides all {} devices: {}", visible_devices, all.size(), name_list(all));
  }
  for (const ListedDevice& listed : found->listed) {
    Plugin* plugin = nullptr;
    for (size_t i = 0; i < found->descriptions.size(); ++i)
      if (found->descriptions[i].get() == listed.plugin) plugin = found->plugins[i].get();
    found->devices.push_back(make_device(listed, plugin, static_cast<uint32_t>(found->devices.size())));
  }
  found->report.devices = static_cast<uint32_t>(found->devices.size());
  found->report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return found;
}

const Discovery& discovery() {
  if (Discovery* found = g_found.load(std::memory_order_acquire)) return *found;
  if (forked()) {                                  // forked during the parent's first count: its mutex may be held for ever
    static const Discovery& none = *new Discovery;
    return none;
  }
  std::lock_guard lock(g_mutex);
  Discovery* found = g_found.load(std::memory_order_relaxed);
  if (found == nullptr) {
    install_fork_guard();
    found = first_count();
    g_found.store(found, std::memory_order_release);
  }
  return *found;
}

const std::vector<Device*>& devices() { return discovery().devices; }

bool devices_frozen() { return g_found.load(std::memory_order_acquire) != nullptr; }

Status add_plugin_path(const std::string& path) {
  struct stat info{};
  if (path.empty() || stat(path.c_str(), &info) != 0)
    return fail(FLHAL_E_INVALID, "flhal_plugin_add: '{}' {}; give a folder, a manifest (.json) or a library (.so)", path,
                path.empty() ? "is empty" : strerrordesc_np(errno));
  std::lock_guard lock(g_mutex);
  if (devices_frozen())
    return fail(FLHAL_E_INVALID, "flhal_plugin_add: {} comes too late, the devices were counted already and an index never changes its meaning; "
                "add it before the first use, or set FLHAL_ADD_PLUGIN_FILES", path);
  g_added.push_back(path);
  return FLHAL_OK;
}

Status find_device(const std::string& name, uint32_t* out_index) {
  const Discovery& found = discovery();
  if (found.devices.empty()) return fail(FLHAL_E_NOT_FOUND, "flhal_device_find: '{}': {}", name, not_found_text());
  Refusal refusal = find_listed(found.listed, name, out_index);
  if (!refusal) return FLHAL_OK;
  return fail(refusal.code, "flhal_device_find: {}", refusal.sentence());
}

std::string not_found_text() {
  const Discovery& found = discovery();
  std::lock_guard lock(g_mutex);
  return found.error.empty() ? found.report.not_found_text() : found.error;
}

std::string load_report_json() {
  const Discovery& found = discovery();
  std::lock_guard lock(g_mutex);
  return found.report.json();
}

void load_report_note(NoteLine note) {
  Discovery* found = g_found.load(std::memory_order_acquire);
  if (found == nullptr) return;
  std::lock_guard lock(g_mutex);
  found->report.notes.push_back(std::move(note));
}

}  // namespace flhal
