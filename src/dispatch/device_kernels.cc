// src/dispatch/device_kernels.cc: one module per device and dialect, functions by name.
#include "dispatch/device_kernels.h"

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "dispatch/dispatch.h"

namespace flhal {
namespace {

struct DialectRow {
  const char* name;
  kernels::Dialect dialect;
};
// Best first. Another dialect (OpenCL C) is another row and its source in `source_of`.
constexpr DialectRow kDialects[] = {{FLHAL_DIALECT_HOST, kernels::Dialect::kHost}};

struct Modules {
  std::mutex mutex;                            // held while the module loads: others want the same one
  flhal_p_module* module = nullptr;
  std::map<std::string, flhal_p_function*> functions;
  bool failed = false;
  std::string failure;
};

Modules& modules_of(uint32_t device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<uint32_t, Modules>;   // never destroyed; addresses are stable
  std::lock_guard lock(mutex);
  return all[device];
}

bool offers(const Device& device, std::string_view dialect) {
  std::string_view list = device.info.dialects ? device.info.dialects : "";
  while (!list.empty()) {
    size_t end = list.find(' ');
    if (list.substr(0, end) == dialect) return true;
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

bool load(Device* device, Modules& m) {
  flhal_p_source_v1 source{};
  source.struct_size = sizeof source;
  source.struct_type = FLHAL_ST_SOURCE;
  source.dialect = FLHAL_DIALECT_HOST;
  source.data = kernels::host_module();
  source.bytes = sizeof(flhal_host_module);
  char log[1024] = "";
  source.build_log = log;
  source.build_log_capacity = sizeof log;
  Plugin& plugin = *device->plugin;
  flhal_status answer;
  {
    auto serial = plugin.lock();
    answer = plugin.table.module_load(device->handle, &source, &m.module);
  }
  if (answer == FLHAL_OK && m.module) return true;
  Status failure = plugin_answer(plugin, "module_load", answer);
  m.failed = true;
  m.failure = failure.ok() ? "module_load gave no module" : last_error_text();
  if (log[0]) m.failure += std::string("; build log: ") + log;
  return false;
}

}  // namespace

bool device_dialect(const Device& device, kernels::Dialect* out, Refusal* why) {
  if (!device.plugin->has_kernels) {
    *why = {Reason::NO_KERNELS, ""};
    return false;
  }
  for (const DialectRow& row : kDialects) {
    if (!offers(device, row.name)) continue;
    *out = row.dialect;
    return true;
  }
  *why = {Reason::NO_DIALECT, device.info.dialects ? device.info.dialects : ""};
  return false;
}

flhal_p_function* device_function(Device* device, kernels::Dialect, const char* name, Refusal* why) {
  if (Status open = device->open(); !open.ok()) {
    *why = {Reason::BUILD_FAILED, last_error_text()};
    return nullptr;
  }
  Modules& m = modules_of(device->index);
  std::lock_guard lock(m.mutex);
  if (m.failed || (!m.module && !load(device, m))) {
    *why = {Reason::BUILD_FAILED, m.failure};
    return nullptr;
  }
  auto [at, fresh] = m.functions.try_emplace(name, nullptr);
  if (!fresh) return at->second;
  Plugin& plugin = *device->plugin;
  flhal_status answer;
  {
    auto serial = plugin.lock();
    answer = plugin.table.function_get(m.module, name, &at->second);
  }
  if (answer == FLHAL_OK && at->second) return at->second;
  Status failure = plugin_answer(plugin, "function_get", answer);
  *why = {Reason::BUILD_FAILED, failure.ok() ? std::string("no function ") + name : last_error_text()};
  m.functions.erase(at);
  return nullptr;
}

void unload_kernel_modules(Device* device) {
  Modules& m = modules_of(device->index);
  std::lock_guard lock(m.mutex);
  if (m.module) {
    auto serial = device->plugin->lock();
    device->plugin->table.module_unload(m.module);
  }
  m.module = nullptr;
  m.functions.clear();
  m.failed = false;
  m.failure.clear();
}

}  // namespace flhal
