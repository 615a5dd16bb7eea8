// conformance/runner/duties.h: the numbered duties of a plugin (duties.def), and finding them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flhal::conformance {

struct Duty {
  int number;
  const char* slot;      // a slot of plugin.h, "flhal_plugin_v1", "library", "all", or "ops.<slot>"
  const char* text;      // what the plugin must do
  const char* breaks;    // what a user sees when it does not
  const char* checker;   // who notices besides the cases: "core", "linker", "nobody else"
  std::string name() const;   // FLP-007
};

const std::vector<Duty>& all_duties();
const Duty* find_duty(std::string_view name);
// "FLP-001 FLP-002" -> the names.
std::vector<std::string> duties_of(std::string_view list);

}  // namespace flhal::conformance
