// conformance/runner/waivers.h: faults that are known, and for how long they may be.
#pragma once

#include <string>
#include <vector>

#include "runner/record.h"

namespace flhal::conformance {

struct Waiver {
  std::string id;          // exact: a waiver for a glob would hide new faults
  std::string last_day;    // 2026-12-31
  std::string reason;
};

// One per line: id, last day, reason. Throws std::runtime_error with file, line and what is wrong.
std::vector<Waiver> read_waivers(const std::string& file);
// Turns waived faults into kWaived; returns a sentence for each waiver that has expired, covers nothing or is not needed.
std::vector<std::string> apply_waivers(Report& report, const std::vector<Waiver>& waivers, const std::string& today);
std::string today();       // of this machine, or FLHAL_CONFORMANCE_TODAY for tests

}  // namespace flhal::conformance
