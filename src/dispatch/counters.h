// src/dispatch/counters.h: what ran where: calls, time and bytes per (device, op, route, reason).
//
// Idea: a row's number is made once per plan; the hot path adds one in its own thread's array (thread_state.h). Time and
// bytes are kept only for rows that leave the chip (host route and fallback), where they are cheap by comparison.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flhal {

inline constexpr uint32_t kRouteFallback = 6;    // the framework's own op, after flhal_fallback_enter

const char* route_name(uint32_t route);

// The row of these, made when new; never 0. Texts are copied.
uint32_t counter_row(uint32_t device, const char* op, uint32_t route, const char* reason);

// counter_row of kRouteFallback for a caller that asks at every call: each thread remembers the rows it met last.
uint32_t fallback_row(uint32_t device, const char* op, const char* reason);

// Adds time and bytes of one call that left the chip; false when there is no such row. `call_site`: kept the first time; may be NULL.
bool count_off_chip(uint32_t row, uint64_t ns, uint64_t bytes_to_host, uint64_t bytes_to_device, const char* call_site);

struct CounterRow {
  uint32_t device = 0, route = 0;
  std::string op, reason, call_site;
  uint64_t calls = 0, ns = 0, bytes_to_host = 0, bytes_to_device = 0;
};
// Everything that has been called since the last reset.
std::vector<CounterRow> counter_rows();
struct CallTotals {
  uint64_t calls = 0, off_chip = 0;              // off_chip: host route and fallback
};
CallTotals call_totals();
void reset_counters();

}  // namespace flhal
