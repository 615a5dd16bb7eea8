// conformance/runner/mutants.h: the list of wrong plugins, and running the suite against each.
#pragma once

#include <vector>

#include "runner/options.h"

namespace flhal::conformance {

struct Mutant {
  const char* name;
  const char* base;        // the plugin it is made of: ram, mock, host
  const char* slot;        // the slot that is wrong; "library" and "optional_table" stand for what is no slot
  const char* wrong;       // what it does wrong, in words
  const char* duties;      // which duties that breaks
  const char* caught_by;   // the case that has to notice
};

const std::vector<Mutant>& all_mutants();
// Prints one line per mutant; exit status 1 when one was not caught by its case.
int run_mutants(const Options& options);

}  // namespace flhal::conformance
