// src/memory/traffic.h: bytes that crossed from one device to another: how many, how long, on whose account.
//
// Idea: a thread works in one scope at a time, a name that a framework gives ("" = none); each copy between devices is added
// to the row (scope, from, to). Such a copy waits for two devices, so a lock and a map cost nothing beside it.
// Threads: any. The scope belongs to its thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace flhal {

struct TrafficRow {
  std::string scope;
  uint32_t from = 0, to = 0;                // device indices
  uint64_t copies = 0, bytes = 0;
  uint64_t ns = 0;                          // of the copies, with
  uint64_t wait_ns = 0;                     // the time they waited for earlier work of both devices
};

// The calling thread works in `name` from now on; gives the number of the scope it was in, for leave_scope.
uint32_t enter_scope(const char* name);
void leave_scope(uint32_t outer);           // an unknown number counts as none

// Everything since the last reset, most bytes first.
std::vector<TrafficRow> traffic_rows();
void reset_traffic();

// Lives as long as one copy between devices. Counts it when finished() was called.
class TrafficTimer {
 public:
  TrafficTimer(uint32_t from, uint32_t to, uint64_t bytes) : from_(from), to_(to), bytes_(bytes) {}
  void waited() { waited_ = Clock::now(); }  // earlier work has ended, the bytes start to move
  void finished();

 private:
  using Clock = std::chrono::steady_clock;
  uint32_t from_, to_;
  uint64_t bytes_;
  Clock::time_point began_ = Clock::now(), waited_ = began_;
};

}  // namespace flhal
