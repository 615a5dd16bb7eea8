// src/memory/traffic.cc: rows of copies between devices; see traffic.h.
#include "memory/traffic.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

namespace flhal {
namespace {

struct Traffic {
  std::mutex mutex;
  std::vector<std::string> names{""};       // a scope's number is its place; names stay, there are as many as source lines
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, TrafficRow> rows;   // scope, from, to
};
// Never destroyed: threads may still copy while the process ends.
Traffic& traffic() {
  static Traffic& t = *new Traffic;
  return t;
}

thread_local uint32_t t_scope = 0;

}  // namespace

uint32_t enter_scope(const char* name) {
  Traffic& t = traffic();
  const uint32_t outer = t_scope;
  std::lock_guard lock(t.mutex);
  auto found = std::find(t.names.begin(), t.names.end(), name);
  t_scope = static_cast<uint32_t>(found - t.names.begin());
  if (found == t.names.end()) t.names.emplace_back(name);
  return outer;
}

void leave_scope(uint32_t outer) {
  Traffic& t = traffic();
  std::lock_guard lock(t.mutex);
  t_scope = outer < t.names.size() ? outer : 0;
}

std::vector<TrafficRow> traffic_rows() {
  Traffic& t = traffic();
  std::lock_guard lock(t.mutex);
  std::vector<TrafficRow> rows;
  for (const auto& [key, row] : t.rows) {
    rows.push_back(row);
    rows.back().scope = t.names[std::get<0>(key)];
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return rows;
}

void reset_traffic() {
  Traffic& t = traffic();
  std::lock_guard lock(t.mutex);
  t.rows.clear();
}

void TrafficTimer::finished() {
  auto ns = [](Clock::duration d) { return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()); };
  const auto end = Clock::now();
  Traffic& t = traffic();
  std::lock_guard lock(t.mutex);
  TrafficRow& row = t.rows[{t_scope, from_, to_}];
  row.from = from_;
  row.to = to_;
  row.copies += 1;
  row.bytes += bytes_;
  row.ns += ns(end - began_);
  row.wait_ns += ns(waited_ - began_);
}

}  // namespace flhal
