// src/core/config.cc: the settings as one table of rows.
//
// Idea: a row knows its names, its default and how to take a value. The environment is read once; a value that does not
// parse leaves the default in force and a sentence that config_load, config_get of that key and the first use of a device
// report until flhal_config_set gives the key a good value.
// Empty environment values count as unset. Environment variables are ignored when privileges were raised.
// Threads: one mutex for writers and texts; the values that hot paths read are atomics in Config.
#include "core/config.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "core/config_follow.h"
#include "core/config_values.h"
#include "layers/rules.h"

namespace flhal {
namespace {

constinit Config g_config;

constexpr const char* kPolicies[] = {"auto", "warn", "strict"};
constexpr const char* kLevels[] = {"error", "warn", "info", "debug"};
constexpr const char* kRoutes[] = {"auto", "native", "kernel", "composite", "host"};
constexpr const char* kOnOff[] = {"on", "off"};
constexpr const char* kSchedules[] = {"auto", "fat", "thin"};
constexpr const char* kFloat64[] = {"refuse", "demote"};
constexpr const char* kCacheModes[] = {"on", "off", "refresh"};

PoolLimit g_pool_limit;                      // guarded by g_mutex, like everything below
auto& g_pool_limit_of = *new std::map<std::string, PoolLimit, std::less<>>;
auto& g_policy_of = *new std::map<std::string, FallbackPolicy, std::less<>>;

bool take_fallback_policy(std::string_view v) {
  auto i = parse_name(v, kPolicies);
  if (i) g_config.fallback_policy.store(static_cast<FallbackPolicy>(*i), std::memory_order_relaxed);
  return i.has_value();
}
bool take_fallback_threshold(std::string_view v) {
  auto x = parse_number(v, 0.0, 1.0);
  if (x) g_config.fallback_threshold.store(*x, std::memory_order_relaxed);
  return x.has_value();
}
bool take_pool_size(std::string_view v) {
  auto limit = parse_pool_limit(v);
  if (limit) g_pool_limit = *limit;
  return limit.has_value();
}
bool take_async_level(std::string_view v) {
  auto x = parse_integer(v, 0, 2);
  if (x) g_config.async_level.store(static_cast<uint32_t>(*x), std::memory_order_relaxed);
  return x.has_value();
}
bool take_log_level(std::string_view v) {
  auto i = parse_name(v, kLevels);
  if (i) g_config.log_level.store(static_cast<int32_t>(*i), std::memory_order_relaxed);
  return i.has_value();
}
bool take_route(std::string_view v) {
  auto i = parse_name(v, kRoutes);
  if (i) g_config.route.store(static_cast<ForcedRoute>(*i), std::memory_order_relaxed);
  return i.has_value();
}
bool take_schedule(std::string_view v) { return parse_name(v, kSchedules).has_value(); }   // plans ask for the text
bool take_kernel_cache(std::string_view v) { return parse_name(v, kOnOff).has_value(); }
bool take_layers(std::string_view v) { return layers::parse_layers(v).has_value(); }       // the layers ask for the texts
bool take_faults(std::string_view v) { return layers::parse_faults(v).has_value(); }
bool take_on_off(std::string_view v) { return parse_name(v, kOnOff).has_value(); }
bool take_text(std::string_view) { return true; }   // checked where it is used: names and paths
bool take_slow_slot(std::string_view v) { return parse_integer(v, 0, 86400).has_value(); }
bool take_probe_timeout(std::string_view v) { return parse_integer(v, 10, 600000).has_value(); }
bool take_float64(std::string_view v) { return parse_name(v, kFloat64).has_value(); }   // frameworks ask for the text
bool take_probe_cache(std::string_view v) { return parse_name(v, kCacheModes).has_value(); }

struct Row {
  const char* key;
  const char* environment;      // FLHAL_<this> wins over TORCH_FL_<this>
  const char* initial;
  bool (*take)(std::string_view);
  const char* valid;            // nullptr: layers::fault_forms(), which is made when it is asked for
  bool until_first_count;       // a change after the device list froze is refused
};

constexpr const char* kPoolValues = "a share of the device's memory like 0.7 or 70%, or bytes with a unit like 512MiB or 8GiB";
constexpr Row kRows[] = {
    {"fallback_policy", "FALLBACK_POLICY", "auto", take_fallback_policy, "auto, warn or strict", false},
    {"fallback_threshold", "FALLBACK_THRESHOLD", "0.1", take_fallback_threshold, "a number from 0.0 to 1.0", false},
    {"memory_pool_size", "MEMORY_POOL_SIZE", "50%", take_pool_size, kPoolValues, false},
    {"async_level", "ASYNC_LEVEL", "1", take_async_level, "0, 1 or 2", false},
    {"log_level", "LOG_LEVEL", "warn", take_log_level, "error, warn, info or debug", false},
    {"plugin_path", "PLUGIN_PATH", "", take_text, "a colon list of folders, manifests or libraries", true},
    {"device", "DEVICE", "", take_text, "a device name", false},
    {"visible_devices", "VISIBLE_DEVICES", "", take_text, "a comma list of device names, name:n or uuid:..., or none", true},
    {"route", "ROUTE", "auto", take_route, "auto, native, kernel, composite or host", false},
    {"kernel_schedule", "KERNEL_SCHEDULE", "auto", take_schedule, "auto, fat or thin", false},
    {"kernel_cache", "KERNEL_CACHE", "on", take_kernel_cache, "on or off", false},
    {"float64", "FLOAT64", "refuse", take_float64, "refuse or demote", false},
    {"slow_slot_s", "SLOW_SLOT_S", "0", take_slow_slot, "a whole number of seconds, 0 for off", true},
    {"layers", "LAYERS", "none", take_layers, layers::kLayersValues, false},
    {"faults", "FAULTS", "", take_faults, nullptr, false},
    {"trace_file", "TRACE_FILE", "flhal-trace-%p.json", take_text, "a path; %p is the process number", false},
    {"trace_payload", "TRACE_PAYLOAD", "off", take_on_off, "on or off", false},
    {"probe_timeout_ms", "PROBE_TIMEOUT_MS", "10000", take_probe_timeout, "a whole number from 10 to 600000", true},
    {"probe_cache", "PROBE_CACHE", "on", take_probe_cache, "on, off or refresh", true},
};
constexpr size_t kRowCount = sizeof kRows / sizeof kRows[0];
const char* valid_values(const Row& row) { return row.valid ? row.valid : layers::fault_forms(); }

struct Value {
  std::string text;
  std::string source = "default";
  std::string error;            // the environment's value did not parse
};

std::mutex g_mutex;
// Never destroyed: settings are read by deleters that run at exit.
std::array<Value, kRowCount>& values() {
  static auto& all = *new std::array<Value, kRowCount>;
  return all;
}
bool g_loaded = false;                        // guarded by g_mutex
std::atomic<bool> g_loaded_well{false};       // read without it
bool g_frozen = false;

const char* environment(const std::string& name) {
  const char* value = secure_getenv(name.c_str());
  return value && !trimmed(value).empty() ? value : nullptr;
}

void load_locked() {
  if (g_loaded) return;
  g_loaded = true;
  for (size_t i = 0; i < kRowCount; ++i) {
    const Row& row = kRows[i];
    Value& value = values()[i];
    value.text = row.initial;
    row.take(row.initial);
    for (const char* prefix : {"FLHAL_", "TORCH_FL_"}) {
      std::string name = std::string(prefix) + row.environment;
      const char* text = environment(name);
      if (text == nullptr) continue;
      std::string_view clean = trimmed(text);
      if (row.take(clean)) {
        value.text = clean;
        value.source = name;
      } else {
        value.error = fmt::format("the environment variable {}='{}' does not parse; {} takes {}", name, text, row.key, valid_values(row));
      }
      break;
    }
  }
}

std::string all_errors() {
  std::string text;
  for (const Value& value : values()) {
    if (value.error.empty()) continue;
    if (!text.empty()) text += "; ";
    text += value.error;
  }
  return text;
}

std::string all_keys() {
  std::string text;
  for (const Row& row : kRows) text += (text.empty() ? "" : ", ") + std::string(row.key);
  return text;
}

// "memory_pool_size@chip_a" -> row and "chip_a"; -1 when there is no such row.
int find_row(std::string_view key, std::string_view* part) {
  size_t at = key.find('@');
  *part = at == std::string_view::npos ? std::string_view() : key.substr(at + 1);
  for (size_t i = 0; i < kRowCount; ++i)
    if (key.substr(0, at) == kRows[i].key) return static_cast<int>(i);
  return -1;
}

Status has_no_parts(const char* function, const Row& row) {
  return fail(FLHAL_E_INVALID, "{}: {} has one value only; of one device or one op there are memory_pool_size@<device> and fallback_policy@<op>",
              function, row.key);
}

// The value of one device or one op; "default" takes it back.
Status set_part(const Row& row, std::string_view key, std::string_view part, std::string_view text) {
  const std::string_view clean = trimmed(text);
  const bool back = clean == "default";
  if (row.take == take_pool_size) {
    auto limit = back ? std::nullopt : parse_pool_limit(clean);
    if ((!limit && !back) || part.empty())
      return fail(FLHAL_E_INVALID, "flhal_config_set: '{}' is no value of {}; it takes {}, or default", text, key, valid_values(row));
    if (back) g_pool_limit_of.erase(std::string(part));
    else g_pool_limit_of.insert_or_assign(std::string(part), *limit);
  } else if (row.take == take_fallback_policy) {
    auto i = back ? std::nullopt : parse_name(clean, kPolicies);
    if ((!i && !back) || part.empty())
      return fail(FLHAL_E_INVALID, "flhal_config_set: '{}' is no value of {}; it takes {}, or default", text, key, valid_values(row));
    if (back) g_policy_of.erase(std::string(part));
    else g_policy_of.insert_or_assign(std::string(part), static_cast<FallbackPolicy>(*i));
    g_config.some_ops_have_policies.store(!g_policy_of.empty(), std::memory_order_release);
  } else {
    return has_no_parts("flhal_config_set", row);
  }
  g_config.version.fetch_add(1, std::memory_order_acq_rel);
  return FLHAL_OK;
}

Status unknown_key(const char* function, std::string_view key) {
  return fail(FLHAL_E_INVALID, "{}: there is no setting '{}'; the settings are {}", function, key, all_keys());
}

}  // namespace

Config& config() { return g_config; }

Status config_load() {
  if (g_loaded_well.load(std::memory_order_acquire)) return FLHAL_OK;
  std::lock_guard lock(g_mutex);
  load_locked();
  std::string errors = all_errors();
  if (!errors.empty()) return fail_text(FLHAL_E_INVALID, std::move(errors));
  g_loaded_well.store(true, std::memory_order_release);
  return FLHAL_OK;
}

static Status set_value(std::string_view key, std::string_view text) {
  std::lock_guard lock(g_mutex);
  load_locked();
  std::string_view part;
  int i = find_row(key, &part);
  if (i < 0) return unknown_key("flhal_config_set", key);
  const Row& row = kRows[i];
  std::string_view clean = trimmed(text);
  if (key.find('@') != std::string_view::npos) return set_part(row, key, part, text);
  if (row.until_first_count && g_frozen)
    return fail(FLHAL_E_INVALID, "flhal_config_set: {} is read at the first device count, which was made already; set it "
                "earlier, or set FLHAL_{} before the program starts", row.key, row.environment);
  if (!row.take(clean))
    return fail(FLHAL_E_INVALID, "flhal_config_set: '{}' is no value of {}; it takes {}", text, row.key, valid_values(row));
  Value& value = values()[i];
  value.text = clean;
  value.source = "flhal_config_set";
  value.error.clear();
  g_config.version.fetch_add(1, std::memory_order_acq_rel);
  return FLHAL_OK;
}

static std::atomic<void (*)()> g_level_follower{nullptr};
void config_on_async_level(void (*follow)()) { g_level_follower.store(follow, std::memory_order_release); }

static std::atomic<void (*)()> g_layers_follower{nullptr};
void config_on_layers(void (*follow)()) { g_layers_follower.store(follow, std::memory_order_release); }

Status config_set(std::string_view key, std::string_view text) {
  FLHAL_TRY(set_value(key, text));
  auto* layers_follow = g_layers_follower.load(std::memory_order_acquire);
  if ((key == "layers" || key == "faults" || key == "trace_file" || key == "trace_payload") && layers_follow) layers_follow();
  auto* follow = g_level_follower.load(std::memory_order_acquire);
  if (key == "async_level" && follow) follow();   // without the lock: it waits for workers, and their calls read settings
  return FLHAL_OK;
}

namespace {

std::string pool_limit_text(const PoolLimit& limit) {
  return limit.bytes != 0 ? fmt::format("{}B", limit.bytes) : fmt::format("{}", limit.share);
}

}  // namespace

Result<std::string> config_get(std::string_view key) {
  std::lock_guard lock(g_mutex);
  load_locked();
  std::string_view part;
  int i = find_row(key, &part);
  if (i < 0) return unknown_key("flhal_config_get", key);
  if (!part.empty()) {
    if (kRows[i].take == take_pool_size) {
      auto found = g_pool_limit_of.find(part);
      if (found != g_pool_limit_of.end()) return pool_limit_text(found->second);
    } else if (kRows[i].take == take_fallback_policy) {
      auto found = g_policy_of.find(part);
      if (found != g_policy_of.end()) return std::string(kPolicies[static_cast<uint32_t>(found->second)]);
    } else {
      return has_no_parts("flhal_config_get", kRows[i]);
    }
  }
  const Value& value = values()[i];
  if (!value.error.empty()) return fail_text(FLHAL_E_INVALID, "flhal_config_get: " + value.error);
  return value.text;
}

std::string config_text(std::string_view key) {
  std::lock_guard lock(g_mutex);
  load_locked();
  std::string_view device;
  int i = find_row(key, &device);
  return i < 0 ? std::string() : values()[i].text;
}

std::string config_source(std::string_view key) {
  std::lock_guard lock(g_mutex);
  load_locked();
  std::string_view device;
  int i = find_row(key, &device);
  return i < 0 ? std::string() : values()[i].source;
}

PoolLimit config_pool_limit(std::string_view device_name) {
  std::lock_guard lock(g_mutex);
  load_locked();
  auto found = g_pool_limit_of.find(device_name);
  return found != g_pool_limit_of.end() ? found->second : g_pool_limit;
}

std::optional<FallbackPolicy> config_policy_of(std::string_view op, std::string_view base_name) {
  std::lock_guard lock(g_mutex);
  for (std::string_view name : {op, base_name})
    if (auto found = g_policy_of.find(name); found != g_policy_of.end()) return found->second;
  return std::nullopt;
}

void config_freeze_discovery() {
  std::lock_guard lock(g_mutex);
  load_locked();
  g_frozen = true;
}

std::vector<std::string> config_pool_limit_devices() {
  std::lock_guard lock(g_mutex);
  std::vector<std::string> names;
  for (const auto& [name, limit] : g_pool_limit_of) names.push_back(name);
  return names;
}

std::vector<std::string> config_variables() {
  std::vector<std::string> names;
  for (const Row& row : kRows)
    for (const char* prefix : {"FLHAL_", "TORCH_FL_"}) names.push_back(std::string(prefix) + row.environment);
  return names;
}

std::string config_json() {
  std::lock_guard lock(g_mutex);
  load_locked();
  cJSON* root = cJSON_CreateObject();
  cJSON* settings = cJSON_AddArrayToObject(root, "settings");
  for (size_t i = 0; i < kRowCount; ++i) {
    const Value& value = values()[i];
    cJSON* row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "key", kRows[i].key);
    cJSON_AddStringToObject(row, "value", value.text.c_str());
    cJSON_AddStringToObject(row, "source", value.source.c_str());
    cJSON_AddStringToObject(row, "valid", valid_values(kRows[i]));
    if (!value.error.empty()) cJSON_AddStringToObject(row, "error", value.error.c_str());
    cJSON_AddItemToArray(settings, row);
  }
  for (const auto& [name, limit] : g_pool_limit_of) {
    cJSON* row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "key", ("memory_pool_size@" + name).c_str());
    cJSON_AddStringToObject(row, "value", pool_limit_text(limit).c_str());
    cJSON_AddStringToObject(row, "source", "flhal_config_set");
    cJSON_AddItemToArray(settings, row);
  }
  for (const auto& [name, policy] : g_policy_of) {
    cJSON* row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "key", ("fallback_policy@" + name).c_str());
    cJSON_AddStringToObject(row, "value", kPolicies[static_cast<uint32_t>(policy)]);
    cJSON_AddStringToObject(row, "source", "flhal_config_set");
    cJSON_AddItemToArray(settings, row);
  }
  char* text = cJSON_Print(root);
  std::string out = text ? text : "{}";
  cJSON_free(text);
  cJSON_Delete(root);
  return out;
}

}  // namespace flhal
