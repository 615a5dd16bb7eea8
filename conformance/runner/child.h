// conformance/runner/child.h: the process in which the cases of one group run.
#pragma once

#include <string>

#include "runner/options.h"
#include "runner/record.h"

namespace flhal::conformance {

// Runs options.arguments (ids of one group) and writes a JSON line to file descriptor 3 before and after each case.
int run_child(const Options& options);
// Prints the plugin's facts as one JSON line to file descriptor 3.
int run_describe(const Options& options);

}  // namespace flhal::conformance
