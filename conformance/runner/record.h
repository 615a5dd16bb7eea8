// conformance/runner/record.h: what came of one case, and of a whole run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flhal::conformance {

enum class Result : uint8_t { kPass, kFail, kNotSupported, kWaived, kWarning, kCrash, kTimeout, kDeviceLost };
inline constexpr uint32_t kResults = 8;
const char* result_name(Result r);                       // "pass", "fail", "not_supported" ...
bool result_of(std::string_view name, Result* out);
inline bool is_fault(Result r) {
  return r == Result::kFail || r == Result::kCrash || r == Result::kTimeout || r == Result::kDeviceLost;
}

struct Record {
  std::string id;
  Result result = Result::kPass;
  std::string text;                                      // why, in words; empty for a pass
  double ms = 0;
};

struct PluginFacts {
  std::string path, id, version, build_id, vendor;
  std::vector<std::string> devices;                      // "chip_a: Mock Chip A"
  uint64_t file_hash = 0;                                // of the library's bytes
};

struct Report {
  PluginFacts plugin;
  std::vector<std::string> profiles;
  uint64_t seed = 1;
  std::string selection;                                 // "" = everything of the profiles
  std::vector<Record> records;                           // one per selected id, in the order of all_cases()
  std::string level;                                     // highest profile reached, "" = none; "kernel, ops"
  const Record* find(std::string_view id) const;
  uint32_t count(Result r) const;
};

// FNV-1a, 64 bits: finds damage and mix-ups, not forgeries.
uint64_t hash_of(std::string_view bytes);
std::string read_file(const std::string& path);          // throws std::runtime_error with a sentence
void write_file(const std::string& path, std::string_view text);

}  // namespace flhal::conformance
