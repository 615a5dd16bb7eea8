// conformance/runner/report.h: a result as JSON (and back), JUnit, TAP and as a page a person reads.
#pragma once

#include <string>
#include <vector>

#include "runner/json.h"
#include "runner/record.h"

namespace flhal::conformance {

Json report_json(const Report& report);
Report report_from_json(const std::string& text, const std::string& file);   // throws std::runtime_error with a sentence
std::string report_junit(const Report& report);
std::string report_tap(const Report& report);
std::string report_summary(const Report& report, const std::vector<std::string>& missing, const std::vector<std::string>& notes);

// What got worse, better, new or went away; *worse counts the first kind.
std::string report_diff(const Report& before, const Report& after, int* worse);

}  // namespace flhal::conformance
