// src/core/config.h: the settings, each a row: key, environment names, default, parser, valid values.
//
// Values come from (later wins): default, TORCH_FL_<KEY>, FLHAL_<KEY>, flhal_config_set. Readers are lock-free.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace flhal {

enum class FallbackPolicy : uint32_t { kAuto, kWarn, kStrict };
enum class ForcedRoute : uint32_t { kAuto, kNative, kKernel, kComposite, kHost };

struct PoolLimit {             // a ceiling: a share of the device's memory, or bytes
  double share = 0.5;
  uint64_t bytes = 0;          // 0: the share counts
};

struct Config {
  std::atomic<FallbackPolicy> fallback_policy{FallbackPolicy::kAuto};
  std::atomic<bool> some_ops_have_policies{false};   // then config_policy_of() is asked first
  std::atomic<double> fallback_threshold{0.1};
  std::atomic<uint32_t> async_level{1};
  std::atomic<int32_t> log_level{1};         // 0 error, 1 warn, 2 info, 3 debug
  std::atomic<ForcedRoute> route{ForcedRoute::kAuto};
  std::atomic<uint32_t> version{1};          // grows with every change: caches compare it
};
Config& config();
Status config_load();                        // reads the environment once; flhal_init and the first use call it
Status config_set(std::string_view key, std::string_view value);
Result<std::string> config_get(std::string_view key);
PoolLimit config_pool_limit(std::string_view device_name);
// fallback_policy@<op>, for the op's full name or its base name; nullopt when it has none of its own.
std::optional<FallbackPolicy> config_policy_of(std::string_view op, std::string_view base_name);
std::string config_json();                   // every setting: key, value, where it came from, valid values, error

// For discovery and plugins: the value in force as text, also when the environment's did not parse; "" for no such key.
std::string config_text(std::string_view key);
std::string config_source(std::string_view key);  // "default", "FLHAL_LOG_LEVEL", "flhal_config_set", ...
void config_on_async_level(void (*follow)());   // called, without locks, after each setting of async_level
void config_freeze_discovery();              // from now on the settings that the first count read cannot be set
std::vector<std::string> config_variables();  // every environment name that a row reads
std::vector<std::string> config_pool_limit_devices();  // the names that have a pool size of their own

}  // namespace flhal
