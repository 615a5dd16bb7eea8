// src/dispatch/report.cc: what ran where, and every other fact core knows, as JSON.
#include "dispatch/report.h"

#include <flhal/memory.h>
#include <flhal/op.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "core/config.h"
#include "core/device.h"
#include "core/fork_guard.h"
#include "core/json_text.h"
#include "core/load_report.h"
#include "core/log.h"
#include "dispatch/counters.h"
#include "dispatch/fallback_policy.h"
#include "dispatch/opset/json.h"
#include "dispatch/vendor_ops.h"
#include "layers/layers_report.h"
#include "memory/pool.h"
#include "memory/traffic.h"

namespace flhal {
namespace {

std::string device_name(uint32_t index) {
  const auto& all = devices();
  return index < all.size() ? all[index]->name : std::to_string(index);
}

bool off_chip(const CounterRow& row) { return row.route == FLHAL_ROUTE_HOST || row.route == kRouteFallback; }

void add_totals(cJSON* root) {
  CallTotals totals = call_totals();
  json_add_number(root, "calls", totals.calls);
  json_add_number(root, "off_chip_calls", totals.off_chip);
  cJSON_AddNumberToObject(root, "off_chip_share",
                          totals.calls ? static_cast<double>(totals.off_chip) / static_cast<double>(totals.calls) : 0);
}

// Per (scope, from, to): what crossed from one device to another, in whose name, and what it cost.
void add_moves(cJSON* root) {
  cJSON* list = cJSON_AddArrayToObject(root, "moves");
  for (const TrafficRow& row : traffic_rows()) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "scope", row.scope);
    json_add(item, "from", device_name(row.from));
    json_add(item, "to", device_name(row.to));
    json_add_number(item, "copies", row.copies);
    json_add_number(item, "bytes", row.bytes);
    cJSON_AddNumberToObject(item, "ms", static_cast<double>(row.ns) / 1e6);
    cJSON_AddNumberToObject(item, "ms_waiting", static_cast<double>(row.wait_ns) / 1e6);
  }
}

// Per (device, op, route, reason), most calls first: only what left the chip, or was declined and went on as a fallback.
std::string fallback_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "fallback");
  add_totals(root.get());
  std::vector<CounterRow> rows = counter_rows();
  std::erase_if(rows, [](const CounterRow& r) { return !off_chip(r); });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.calls > b.calls; });
  cJSON* list = cJSON_AddArrayToObject(root.get(), "ops");
  for (const CounterRow& row : rows) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "op", row.op);
    json_add(item, "device", device_name(row.device));
    json_add(item, "route", route_name(row.route));
    json_add(item, "reason", row.reason);
    json_add_number(item, "calls", row.calls);
    cJSON_AddNumberToObject(item, "ms", static_cast<double>(row.ns) / 1e6);
    json_add_number(item, "bytes_to_host", row.bytes_to_host);
    json_add_number(item, "bytes_to_device", row.bytes_to_device);
    json_add(item, "call_site", row.call_site);
  }
  add_moves(root.get());
  return json_print(root.get(), true);
}

// Calls per route, and per op and route, with the reason why better routes were not taken.
std::string routes_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "routes");
  add_totals(root.get());
  std::vector<CounterRow> rows = counter_rows();
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.calls > b.calls; });
  cJSON* sums = cJSON_AddObjectToObject(root.get(), "routes");
  for (uint32_t route = FLHAL_ROUTE_NATIVE; route <= kRouteFallback; ++route) {
    uint64_t calls = 0;
    for (const CounterRow& row : rows)
      if (row.route == route) calls += row.calls;
    json_add_number(sums, route_name(route), calls);
  }
  cJSON* list = cJSON_AddArrayToObject(root.get(), "ops");
  for (const CounterRow& row : rows) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "op", row.op);
    json_add(item, "device", device_name(row.device));
    json_add(item, "route", route_name(row.route));
    json_add(item, "reason", row.reason);
    json_add_number(item, "calls", row.calls);
  }
  return json_print(root.get(), true);
}

std::string memory_json() {
  JsonOwner root(cJSON_CreateObject());
  json_add(root.get(), "report", "memory");
  cJSON* list = cJSON_AddArrayToObject(root.get(), "devices");
  for (Device* device : devices()) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add_number(item, "index", device->index);
    json_add(item, "name", device->name);
    json_add_bool(item, "open", device->pool != nullptr);
    if (!device->pool) continue;
    flhal_memory_stats s{};
    s.struct_size = sizeof s;
    device->pool->stats(&s);
    const std::pair<const char*, uint64_t> figures[] = {
        {"requested", s.requested},
        {"requested_peak", s.requested_peak},
        {"allocated", s.allocated},
        {"allocated_peak", s.allocated_peak},
        {"reserved", s.reserved},
        {"reserved_peak", s.reserved_peak},
        {"pending_free", s.pending_free},
        {"largest_free_block", s.largest_free_block},
        {"limit", s.limit},
        {"device_free", s.device_free},
        {"device_total", s.device_total},
        {"n_allocations", s.n_allocations},
        {"n_frees", s.n_frees},
        {"n_live", s.n_live},
        {"n_slabs", s.n_slabs},
        {"n_retries", s.n_retries},
        {"n_out_of_memory", s.n_out_of_memory},
    };
    for (const auto& [name, value] : figures) json_add_number(item, name, value);
  }
  return json_print(root.get(), true);
}

struct ReportRow {
  const char* name;
  std::string (*make)();
  bool resets;
};
constexpr ReportRow kReports[] = {
    {"load", load_report_json, false}, {"devices", devices_json, false}, {"fallback", fallback_json, true},
    {"routes", routes_json, true},     {"memory", memory_json, false},   {"config", config_json, false},
    {"ops", opset::json, false},       {"vendor_ops", vendor_ops_json, false}, {"layers", layers_json, true},
};

Result<const ReportRow*> find_report(std::string_view which, const char* function, bool resets) {
  std::string names;
  for (const ReportRow& row : kReports) {
    if (which == row.name && (row.resets || !resets)) return &row;
    if (row.resets || !resets) names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return fail(FLHAL_E_NOT_FOUND, "{}: there is no report \"{}\"; there are: {}", function, which, names);
}

}  // namespace

Result<std::string> report_json(std::string_view which) {
  FLHAL_ASSIGN(const ReportRow* row, find_report(which, "flhal_report", false));
  return row->make();
}

Status report_reset(std::string_view which) {
  FLHAL_ASSIGN(const ReportRow* row, find_report(which, "flhal_report_reset", true));
  if (row->make == layers_json) {
    reset_layers();
    return FLHAL_OK;
  }
  reset_counters();   // both reports read the same rows
  reset_traffic();
  reset_fallback_warnings();
  return FLHAL_OK;
}

std::string fallback_summary() {
  std::map<uint32_t, uint64_t> by_route;
  std::vector<CounterRow> rows = counter_rows();
  for (const CounterRow& row : rows) by_route[row.route] += row.calls;
  if (by_route.empty()) return "";
  std::string text = "calls by route:";
  for (const auto& [route, calls] : by_route) text += fmt::format(" {} {}", route_name(route), calls);
  std::erase_if(rows, [](const CounterRow& r) { return !off_chip(r); });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  for (size_t i = 0; i < rows.size() && i < 5; ++i)
    text += fmt::format("\n  {} on {}: {} calls, {:.1f} ms, {}", rows[i].op, device_name(rows[i].device), rows[i].calls,
                        static_cast<double>(rows[i].ns) / 1e6, rows[i].reason);
  for (const TrafficRow& row : traffic_rows())
    text += fmt::format("\n  moved {} -> {}{}{}: {} bytes in {} copies, {:.1f} ms", device_name(row.from), device_name(row.to),
                        row.scope.empty() ? "" : " in ", row.scope, row.bytes, row.copies, static_cast<double>(row.ns) / 1e6);
  return text;
}

void log_summary() {
  static std::atomic<bool> said{false};
  if (forked() || !log_enabled(kLogInfo)) return;
  std::string text = fallback_summary();
  if (!text.empty() && !said.exchange(true)) log_text(kLogInfo, text);
}

}  // namespace flhal
