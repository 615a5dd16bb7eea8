// conformance/runner/submission.h: one file that ties a result to the library it belongs to.
#pragma once

#include <string>

#include "runner/record.h"

namespace flhal::conformance {

// The submission's text. Throws std::runtime_error with a sentence when the report does not belong to the library, is
// incomplete or has faults.
std::string pack(const std::string& report_file, const std::string& plugin_file);
// Throws std::runtime_error when something does not hold; returns what was proven, as a sentence. plugin_file may be "".
std::string verify(const std::string& submission_file, const std::string& plugin_file);

}  // namespace flhal::conformance
