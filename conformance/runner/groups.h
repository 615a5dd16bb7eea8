// conformance/runner/groups.h: running groups of cases in processes of their own, with time limits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/case.h"
#include "runner/record.h"

namespace flhal::conformance {

struct GroupRun {
  std::string program;                     // this executable
  std::string plugin, profiles;            // as the child takes them
  uint64_t seed = 1;
  uint32_t repeat = 1, jobs = 1;
  double time_factor = 1;
  std::vector<std::pair<std::string, std::string>> environment;   // added to the children's
  std::function<void(const Record&)> on_record;                   // as they come
};

// One record per id, in the order given. A crash or a time limit costs the case it met, not its group.
std::vector<Record> run_groups(const GroupRun& run, const std::vector<const Case*>& cases);

// Runs one child command, collects the lines it writes to descriptor 3. `ended` says how it ended, "" for exit status 0.
std::vector<std::string> ask_child(const std::string& program, const std::vector<std::string>& arguments, uint64_t limit_ms,
                                   std::string* ended, const std::vector<std::pair<std::string, std::string>>& environment = {});

std::string own_path();                    // of this executable

}  // namespace flhal::conformance
