// conformance/runner/tables.h: the reference pages that are made from duties, cases and mutants.
#pragma once

#include <string>

namespace flhal::conformance {

std::string duties_page();                          // docs/reference/duties.md
std::string mutants_page();                         // docs/reference/mutants.md
std::string must_pass_list(const std::string& profile);   // every id of exactly this profile, sorted

}  // namespace flhal::conformance
