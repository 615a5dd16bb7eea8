// conformance/runner/host_table.h: the flhal_host_v1 that plugins get here; it counts, and remembers who did what when.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>
#include <string>

namespace flhal::conformance {

struct LeftError {                 // what set_error left on this thread
  bool called = false;
  flhal_status status = 0;
  int64_t vendor_code = 0;
  std::string text;
};

// The struct plugins are given; the same one for the whole process.
const flhal_host_v1* host_table();

// The error left on this thread since the last call, and forgets it.
LeftError take_error();

uint64_t host_live_blocks();       // from alloc, not yet freed
void host_life_begins();           // init may be called
void host_life_ends();             // shutdown has returned: calls from now on are counted as late
uint64_t host_late_calls();

}  // namespace flhal::conformance
