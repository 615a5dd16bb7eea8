// src/dispatch/counters.cc: rows of counts, their names, and sums over threads.
#include "dispatch/counters.h"

#include <flhal/op.h>

#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "dispatch/thread_state.h"

namespace flhal {
namespace {

using RowName = std::tuple<uint32_t, uint32_t, std::string, std::string>;   // device, route, op, reason

struct Row {
  CounterRow names;
  uint64_t ns = 0, bytes_to_host = 0, bytes_to_device = 0;
  uint64_t calls_at_reset = 0;
};

struct Rows {
  std::mutex mutex;
  std::map<RowName, uint32_t> numbers;
  std::deque<Row> rows{Row{}};                   // row 0 counts nothing
};
Rows& rows() {
  static Rows& r = *new Rows;                    // never destroyed: threads may run at exit
  return r;
}

bool off_chip(uint32_t route) { return route == FLHAL_ROUTE_HOST || route == kRouteFallback; }

}  // namespace

uint32_t counter_row(uint32_t device, const char* op, uint32_t route, const char* reason) {
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  auto [at, fresh] = r.numbers.try_emplace(RowName{device, route, op, reason}, static_cast<uint32_t>(r.rows.size()));
  if (fresh) {
    Row row;
    row.names.device = device;
    row.names.route = route;
    row.names.op = op;
    row.names.reason = reason;
    r.rows.push_back(std::move(row));
  }
  return at->second;
}

// The caller's texts may have changed since an address was met, and a row's never do: they are compared.
uint32_t fallback_row(uint32_t device, const char* op, const char* reason) {
  const auto address = reinterpret_cast<uintptr_t>(op);
  MetFallback& met = thread_state().met_fallbacks[(address >> 4 ^ address >> 10 ^ device) % kMetFallbacks];
  if (met.op == op && met.reason == reason && met.names->device == device && met.names->op == op && met.names->reason == reason)
    return met.row;
  const uint32_t row = counter_row(device, op, kRouteFallback, reason);
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  met = {op, reason, &r.rows[row].names, row};
  return row;
}

bool count_off_chip(uint32_t row, uint64_t ns, uint64_t bytes_to_host, uint64_t bytes_to_device,
                    const char* call_site) {
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  if (row == 0 || row >= r.rows.size()) return false;
  Row& at = r.rows[row];
  at.ns += ns;
  at.bytes_to_host += bytes_to_host;
  at.bytes_to_device += bytes_to_device;
  if (call_site && at.names.call_site.empty()) at.names.call_site = call_site;
  return true;
}

std::vector<CounterRow> counter_rows() {
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  std::vector<CounterRow> out;
  for (uint32_t i = 1; i < r.rows.size(); ++i) {
    const Row& row = r.rows[i];
    CounterRow c = row.names;
    c.calls = count_of_all_threads(i) - row.calls_at_reset;
    if (c.calls == 0) continue;
    c.ns = row.ns;
    c.bytes_to_host = row.bytes_to_host;
    c.bytes_to_device = row.bytes_to_device;
    out.push_back(std::move(c));
  }
  return out;
}

CallTotals call_totals() {
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  CallTotals t;
  for (uint32_t i = 1; i < r.rows.size(); ++i) {
    uint64_t calls = count_of_all_threads(i) - r.rows[i].calls_at_reset;
    t.calls += calls;
    if (off_chip(r.rows[i].names.route)) t.off_chip += calls;
  }
  return t;
}

void reset_counters() {
  Rows& r = rows();
  std::lock_guard lock(r.mutex);
  for (uint32_t i = 1; i < r.rows.size(); ++i) {
    Row& row = r.rows[i];
    row.calls_at_reset = count_of_all_threads(i);
    row.ns = row.bytes_to_host = row.bytes_to_device = 0;
    row.names.call_site.clear();
  }
}

}  // namespace flhal
