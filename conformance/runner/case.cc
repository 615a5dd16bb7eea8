// conformance/runner/case.cc: the list of all cases, sorted and checked once.
#include "runner/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "runner/duties.h"

namespace flhal::conformance {
namespace {

// The order in which a maker meets them: a fault in an early area explains failures of later ones.
const std::vector<std::string> kAreas = {"abi",    "device", "memory",  "copy", "fill", "module", "stream",
                                         "event", "error",  "thread", "process", "plan", "op",   "perf"};

std::vector<Case>& added() {
  static std::vector<Case> cases;
  return cases;
}

size_t rank_of(std::string_view area) {
  return static_cast<size_t>(std::find(kAreas.begin(), kAreas.end(), area) - kAreas.begin());
}

[[noreturn]] void refuse(const std::string& text) {
  fmt::print(stderr, "flhal-conformance: {}\n", text);
  std::abort();
}

void check(const Case& c) {
  auto dots = std::count(c.id.begin(), c.id.end(), '.');
  bool letters = std::all_of(c.id.begin(), c.id.end(), [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '.';
  });
  if (!letters || dots < 2 || c.id.find("..") != std::string::npos || c.id.back() == '.')
    refuse(fmt::format("the id \"{}\" is not area.group.case[.parameters] in [a-z0-9_.]", c.id));
  if (rank_of(c.area()) == kAreas.size()) refuse(fmt::format("the id \"{}\" names an unknown area", c.id));
  auto duties = duties_of(c.duties);
  if (duties.empty()) refuse(fmt::format("the case {} names no duty", c.id));
  for (const std::string& name : duties)
    if (find_duty(name) == nullptr) refuse(fmt::format("the case {} names the duty {}, which duties.def does not have", c.id, name));
}

}  // namespace

const char* profile_name(Profile profile) {
  static const char* const names[kProfiles] = {"sync", "kernel", "async", "ops"};
  return names[static_cast<uint8_t>(profile)];
}

bool add_case(std::string id, Profile profile, std::string duties, std::function<void(Context&)> run, uint32_t limit_ms) {
  added().push_back(Case{std::move(id), profile, std::move(duties), std::move(run), limit_ms});
  return true;
}

const std::vector<std::string>& area_names() { return kAreas; }

const std::vector<Case>& all_cases() {
  static const std::vector<Case>& sorted = []() -> std::vector<Case>& {
    std::vector<Case>& cases = added();
    for (const Case& c : cases) check(c);
    std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
      size_t left = rank_of(a.area()), right = rank_of(b.area());
      return left != right ? left < right : a.id < b.id;
    });
    for (size_t i = 1; i < cases.size(); ++i)
      if (cases[i].id == cases[i - 1].id) refuse(fmt::format("two cases have the id {}", cases[i].id));
    return cases;
  }();
  return sorted;
}

const Case* find_case(std::string_view id) {
  for (const Case& c : all_cases())
    if (c.id == id) return &c;
  return nullptr;
}

}  // namespace flhal::conformance
