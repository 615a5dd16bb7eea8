// conformance/runner/duties.cc: duties.def as a table.
#include "runner/duties.h"

#include <fmt/format.h>

#include <sstream>

namespace flhal::conformance {

std::string Duty::name() const { return fmt::format("FLP-{:03}", number); }

const std::vector<Duty>& all_duties() {
  static const std::vector<Duty> duties = {
#define FLHAL_DUTY(number, slot, text, breaks, checker) Duty{number, slot, text, breaks, checker},
#include "duties.def"
#undef FLHAL_DUTY
  };
  return duties;
}

const Duty* find_duty(std::string_view name) {
  for (const Duty& d : all_duties())
    if (d.name() == name) return &d;
  return nullptr;
}

std::vector<std::string> duties_of(std::string_view list) {
  std::istringstream in{std::string(list)};
  std::vector<std::string> names;
  for (std::string name; in >> name;) names.push_back(name);
  return names;
}

}  // namespace flhal::conformance
