// conformance/runner/case.h: what a case is, and the list of all of them.
//
// An id is `area.group.case[.parameters]`, in [a-z0-9_.], and is kept for ever: a case whose meaning changes gets a new id.
// The set of ids never depends on the plugin: what a plugin cannot do is recorded as not_supported.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flhal::conformance {

// sync, kernel and async each contain the one before; ops stands beside them: the optional table "ops".
enum class Profile : uint8_t { kSync, kKernel, kAsync, kOps };
inline constexpr uint32_t kProfiles = 4;
const char* profile_name(Profile profile);

class Context;

struct Case {
  std::string id;
  Profile profile;                        // the smallest profile that has it
  std::string duties;                     // "FLP-001 FLP-002": what it checks, see duties.def
  std::function<void(Context&)> run;
  uint32_t limit_ms;

  std::string_view area() const { return std::string_view(id).substr(0, id.find('.')); }
  std::string_view group() const { return std::string_view(id).substr(0, id.find('.', id.find('.') + 1)); }
};

inline constexpr uint32_t kDefaultLimitMs = 10000;

bool add_case(std::string id, Profile profile, std::string duties, std::function<void(Context&)> run,
              uint32_t limit_ms = kDefaultLimitMs);

// Sorted: areas in the order of kAreas, ids of an area by their text. Checks ids and duties on the first call and ends the
// program with a sentence when one is malformed or there twice.
const std::vector<Case>& all_cases();
const Case* find_case(std::string_view id);
const std::vector<std::string>& area_names();

#define FLHAL_JOIN_2(a, b) a##b
#define FLHAL_JOIN(a, b) FLHAL_JOIN_2(a, b)
#define FLHAL_CASE_LIMITED(id, profile, duties, limit_ms)                                                      \
  static void FLHAL_JOIN(case_, __LINE__)(Context&);                                                           \
  static const bool FLHAL_JOIN(added_, __LINE__) =                                                             \
      ::flhal::conformance::add_case(id, profile, duties, FLHAL_JOIN(case_, __LINE__), limit_ms);              \
  static void FLHAL_JOIN(case_, __LINE__)([[maybe_unused]] Context& ctx)
#define FLHAL_CASE(id, profile, duties) FLHAL_CASE_LIMITED(id, profile, duties, ::flhal::conformance::kDefaultLimitMs)
// Registers families of cases with parameters: the body runs before main and calls add_case.
#define FLHAL_CASES()                                                             \
  static bool FLHAL_JOIN(add_family_, __LINE__)();                                \
  static const bool FLHAL_JOIN(family_, __LINE__) = FLHAL_JOIN(add_family_, __LINE__)(); \
  static bool FLHAL_JOIN(add_family_, __LINE__)()

}  // namespace flhal::conformance
