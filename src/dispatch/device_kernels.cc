// src/dispatch/device_kernels.cc: the host dialect's one module per device, and one module per kernel text.
#include "dispatch/device_kernels.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/exit.h"
#include "core/log.h"
#include "dispatch/chip_faults.h"
#include "dispatch/dispatch.h"
#include "dispatch/kernel_cache.h"

namespace flhal {
namespace {

struct DialectRow {
  const char* name;
  kernels::Dialect dialect;
};
// Best first.
constexpr DialectRow kDialects[] = {{FLHAL_DIALECT_HOST, kernels::Dialect::kHost},
                                    {"opencl-c-1.2", kernels::Dialect::kOpenClC}};

struct TextModule {
  std::mutex mutex;                            // held while it builds: others want the same one
  bool tried = false;
  bool kept = false;                           // its code is on disk, or cannot be
  flhal_p_module* module = nullptr;
  flhal_p_function* function = nullptr;
  std::string failure;
};

struct Modules {
  std::mutex mutex;                            // held while the host module loads
  flhal_p_module* module = nullptr;
  std::map<std::string, flhal_p_function*> functions;
  bool failed = false;
  std::string failure;
  std::mutex texts_mutex;                      // the map only
  std::map<const kernels::TextKernel*, std::shared_ptr<TextModule>> texts;
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

flhal_status load_module(Plugin& plugin, Device* device, const flhal_p_source_v1& source, flhal_p_module** out) {
  auto serial = plugin.lock();
  return plugin_call(plugin.table.module_load, device->handle, &source, out);
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
  flhal_status answer = load_module(plugin, device, source, &m.module);
  rest_before_exit();
  if (answer == FLHAL_OK && m.module) return true;
  Status failure = plugin_answer(plugin, "module_load", answer);
  m.failed = true;
  m.failure = failure.ok() ? "module_load gave no module" : last_error_text();
  if (log[0]) m.failure += std::string("; build log: ") + log;
  return false;
}

flhal_p_function* get_function(Plugin& plugin, flhal_p_module* module, const char* name, std::string* failure) {
  flhal_p_function* function = nullptr;
  flhal_status answer;
  {
    auto serial = plugin.lock();
    answer = plugin_call(plugin.table.function_get, module, name, &function);
  }
  if (answer == FLHAL_OK && function) return function;
  Status status = plugin_answer(plugin, "function_get", answer);
  *failure = status.ok() ? std::string("no function ") + name : last_error_text();
  return nullptr;
}

// From the disk: code this compiler made before. False: it has to compile.
bool load_kept(Device* device, const kernels::TextKernel& text, TextModule& m) {
  Plugin& plugin = *device->plugin;
  std::string code;
  if (!plugin.module_binary || !kept_code(*device, text, &code)) return false;
  flhal_p_source_v1 source{};
  source.struct_size = sizeof source;
  source.struct_type = FLHAL_ST_SOURCE;
  source.dialect = plugin.module_binary->dialect;
  source.data = code.data();
  source.bytes = code.size();
  source.options = text.options.c_str();
  char build_log[1024] = "";
  source.build_log = build_log;
  source.build_log_capacity = sizeof build_log;
  if (load_module(plugin, device, source, &m.module) == FLHAL_OK && m.module) {
    std::string unused;
    m.function = get_function(plugin, m.module, text.function, &unused);
    if (m.function) return true;
    auto serial = plugin.lock();
    plugin_call(plugin.table.module_unload, m.module);
  }
  m.module = nullptr;
  log(kLogDebug, "{}: kernel {} ({:016x}): the code on disk is refused; compiling", device->name, text.name, text.hash);
  return false;
}

void build(Device* device, const kernels::TextKernel& text, TextModule& m) {
  m.tried = true;
  const auto started = std::chrono::steady_clock::now();
  auto ms = [&] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count(); };
  if (load_kept(device, text, m)) {
    m.kept = true;
    log(kLogDebug, "{}: kernel {} ({:016x}) from disk in {:.1f} ms", device->name, text.name, text.hash, ms());
    return;
  }
  std::vector<char> build_log(64 * 1024);
  flhal_p_source_v1 source{};
  source.struct_size = sizeof source;
  source.struct_type = FLHAL_ST_SOURCE;
  source.dialect = "opencl-c-1.2";
  source.data = text.source.data();
  source.bytes = text.source.size();
  source.options = text.options.c_str();
  source.build_log = build_log.data();
  source.build_log_capacity = build_log.size();
  Plugin& plugin = *device->plugin;
  flhal_status answer = load_module(plugin, device, source, &m.module);
  build_log.back() = 0;
  if (answer == FLHAL_OK && m.module) {
    m.function = get_function(plugin, m.module, text.function, &m.failure);
  } else {
    Status failure = plugin_answer(plugin, "module_load", answer);
    m.failure = text.name + ": " + (failure.ok() ? "module_load gave no module" : last_error_text());
  }
  if (m.function) {
    log(kLogDebug, "{}: kernel {} ({:016x}) built in {:.1f} ms", device->name, text.name, text.hash, ms());
  } else {
    log(kLogDebug, "{}: kernel {} ({:016x}) does not build: {}\n{}", device->name, text.name, text.hash, m.failure, build_log.data());
  }
}

flhal_p_function* text_function(Device* device, const kernels::TextKernel& text, RouteRefusal* why) {
  Modules& all = modules_of(device->index);
  std::shared_ptr<TextModule> m;
  {
    std::lock_guard lock(all.texts_mutex);
    std::shared_ptr<TextModule>& slot = all.texts[&text];
    if (!slot) slot = std::make_shared<TextModule>();
    m = slot;
  }
  std::lock_guard lock(m->mutex);
  if (!m->tried) build(device, text, *m);
  if (!m->function) *why = {Reason::BUILD_FAILED, m->failure};
  return m->function;
}

}  // namespace

bool device_target(const Device& device, kernels::Target* out, RouteRefusal* why) {
  if (!device.plugin->has_kernels) {
    *why = {Reason::NO_KERNELS, ""};
    return false;
  }
  for (const DialectRow& row : kDialects) {
    if (!offers(device, row.name)) continue;
    *out = {};
    out->dialect = row.dialect;
    const std::string schedule = config_text("kernel_schedule");
    const bool fat = schedule == "auto" ? device.has(FLHAL_CAP_LANES_ARE_CORES) : schedule == "fat";
    out->schedule = fat ? kernels::Schedule::kFat : kernels::Schedule::kThin;
    out->fp64 = device.has(FLHAL_CAP_FP64);
    if (device.info.preferred_vector_bytes) out->vector_bytes = device.info.preferred_vector_bytes;
    if (device.info.max_local_bytes) out->local_bytes = device.info.max_local_bytes;
    return true;
  }
  *why = {Reason::NO_DIALECT, device.info.dialects ? device.info.dialects : ""};
  return false;
}

flhal_p_function* device_function(Device* device, const kernels::KernelPlan& plan, RouteRefusal* why) {
  if (Status open = device->open(); !open.ok()) {
    *why = {Reason::BUILD_FAILED, last_error_text()};
    return nullptr;
  }
  if (plan.text) return text_function(device, *plan.text, why);
  Modules& m = modules_of(device->index);
  std::lock_guard lock(m.mutex);
  if (m.failed || (!m.module && !load(device, m))) {
    *why = {Reason::BUILD_FAILED, m.failure};
    return nullptr;
  }
  auto [at, fresh] = m.functions.try_emplace(plan.function, nullptr);
  if (!fresh) return at->second;
  std::string failure;
  flhal_p_function* function = get_function(*device->plugin, m.module, plan.function, &failure);
  if (function) return at->second = function;
  *why = {Reason::BUILD_FAILED, failure};
  m.functions.erase(at);
  return nullptr;
}

void keep_kernel_code(Device* device, const kernels::TextKernel& text) {
  Plugin& plugin = *device->plugin;
  Modules& all = modules_of(device->index);
  std::shared_ptr<TextModule> m;
  {
    std::lock_guard lock(all.texts_mutex);
    auto at = all.texts.find(&text);
    if (at == all.texts.end()) return;
    m = at->second;
  }
  std::lock_guard lock(m->mutex);
  if (m->kept || !m->module) return;
  m->kept = true;
  if (!plugin.module_binary) return;
  std::string code;
  uint64_t bytes = 0;
  {
    auto serial = plugin.lock();
    if (plugin.module_binary->get(m->module, nullptr, 0, &bytes) != FLHAL_OK || bytes == 0) return;
    code.resize(bytes);
    if (plugin.module_binary->get(m->module, code.data(), bytes, &bytes) != FLHAL_OK || bytes > code.size()) return;
  }
  code.resize(bytes);
  keep_code(*device, text, code);
}

void unload_kernel_modules(Device* device) {
  forget_chip_faults(device);
  Modules& m = modules_of(device->index);
  std::lock_guard lock(m.mutex);
  auto unload = [&](flhal_p_module*& module) {
    if (!module) return;
    auto serial = device->plugin->lock();
    plugin_call(device->plugin->table.module_unload, module);
    module = nullptr;
  };
  unload(m.module);
  m.functions.clear();
  m.failed = false;
  m.failure.clear();
  std::lock_guard texts(m.texts_mutex);
  for (auto& [text, entry] : m.texts) {
    std::lock_guard building(entry->mutex);
    unload(entry->module);
  }
  m.texts.clear();
}

}  // namespace flhal
