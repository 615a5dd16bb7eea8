// tests/support/fresh_process.h: runs a program in a new process, with a time limit, and brings back all it said.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace flhal::test {

struct Command {
  std::vector<std::string> argv;                      // argv[0]: path, or a name found in PATH
  std::map<std::string, std::string> environment;     // the whole of it: nothing is inherited
  std::string folder;                                 // where it runs; "" = here
  double seconds_max = 60;                            // then SIGKILL
  std::optional<unsigned> user;                       // drop root to this user and group
};

struct ProcessResult {
  int exit_code = -1;        // -1 when a signal ended it or it did not start
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  std::string out, err;
  std::string failure;       // why it did not start
  bool ok() const { return exit_code == 0 && !timed_out; }
  std::string describe() const;   // for INFO(): how it ended and both outputs
};

ProcessResult run_process(const Command& command);

}  // namespace flhal::test
