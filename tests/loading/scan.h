// tests/loading/scan.h: runs scan_one in a world and reads what it printed.
#pragma once

#include <string>
#include <vector>

#include "support/test_world.h"

namespace flhal::test {

struct ReportLine {        // one plugin, place or note of the load report
  std::string path, status, id, reason, remedy;
  double milliseconds = 0;
};

struct Scan {
  ProcessResult process;
  std::vector<std::string> devices, working;      // names
  std::vector<std::string> lines;                 // "device ..." lines, whole
  std::vector<ReportLine> plugins, places;
  std::string none;                               // the sentence when there is no device
  bool works(const std::string& name) const;
  const ReportLine* plugin(const std::string& part_of_path) const;   // nullptr when the report has no such line
};

Scan scan(TestWorld& world, double seconds_max = 60);

}  // namespace flhal::test
