// src/dispatch/fallback_policy.cc: policies, permission, and the two kinds of warnings.
#include "dispatch/fallback_policy.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>

#include "core/log.h"
#include "dispatch/counters.h"
#include "dispatch/thread_state.h"

namespace flhal {
namespace {

constexpr uint64_t kCallsBeforeWarning = 100;
constexpr uint64_t kTimeBits = 40;             // of a ticket: 18 minutes of nanoseconds; the rest is the row

struct Warnings {
  std::mutex mutex;
  std::set<std::string> said;                  // "op\nreason" under the policy warn
  std::atomic<bool> threshold_said{false};
  std::atomic<uint64_t> off_chip{0}, known_calls{0};
};
Warnings& warnings() {
  static Warnings& w = *new Warnings;
  return w;
}

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string_view base_name(std::string_view op) {
  size_t colons = op.rfind("::");
  if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

void warn_once(const Device& device, const char* op, const char* how, const char* reason) {
  Warnings& w = warnings();
  {
    std::lock_guard lock(w.mutex);
    if (!w.said.insert(fmt::format("{}\n{}", op, reason)).second) return;
  }
  log(kLogWarn, "{} leaves {} ({}): {}", op, device.name, how, reason);
}

void say_threshold(const CallTotals& totals, double threshold) {
  std::vector<CounterRow> rows = counter_rows();
  std::erase_if(rows, [](const CounterRow& r) { return r.route != FLHAL_ROUTE_HOST && r.route != kRouteFallback; });
  std::sort(rows.begin(), rows.end(), [](const CounterRow& a, const CounterRow& b) { return a.calls > b.calls; });
  std::string worst;
  for (size_t i = 0; i < rows.size() && i < 5; ++i)
    worst += fmt::format("{}{} ({} calls: {})", i ? ", " : "", rows[i].op, rows[i].calls, rows[i].reason);
  log(kLogWarn,
      "{} of {} calls ({:.0f} %) left the chip, above fallback_threshold {:g}; worst: {}. See the report \"fallback\"; "
      "fallback_policy strict refuses such calls",
      totals.off_chip, totals.calls, 100.0 * static_cast<double>(totals.off_chip) / static_cast<double>(totals.calls),
      threshold, worst);
}

}  // namespace

FallbackPolicy policy_for(const char* op) {
  const auto& scopes = thread_state().scopes;
  for (size_t i = scopes.size(); i-- > 0;)
    if (scopes[i].op.empty() || scopes[i].op == op || scopes[i].op == base_name(op)) return scopes[i].policy;
  if (__builtin_expect(config().some_ops_have_policies.load(std::memory_order_relaxed), 0)) {
    if (auto policy = config_policy_of(op, base_name(op))) return *policy;
  }
  return config().fallback_policy.load(std::memory_order_relaxed);
}

Status allow_fallback(const Device& device, const char* op, const char* how, const char* reason) {
  FallbackPolicy policy = policy_for(op);
  if (__builtin_expect(policy == FallbackPolicy::kAuto, 1)) return FLHAL_OK;
  if (policy == FallbackPolicy::kStrict)
    return fail(FLHAL_E_DENIED,
                "{}: would leave {} ({}; {}), which fallback_policy strict forbids; set fallback_policy to auto or warn, "
                "or use an op the device has",
                op, device.name, how, *reason ? reason : "no route on the chip");
  warn_once(device, op, how, reason);
  return FLHAL_OK;
}

Status push_policy(const char* policy, const char* op) {
  FallbackPolicy value;
  std::string_view name = policy ? policy : "";
  if (name == "auto") value = FallbackPolicy::kAuto;
  else if (name == "warn") value = FallbackPolicy::kWarn;
  else if (name == "strict") value = FallbackPolicy::kStrict;
  else return fail(FLHAL_E_INVALID, "flhal_fallback_push: policy \"{}\"; valid are auto, warn and strict", name);
  thread_state().scopes.push_back({value, op ? op : ""});
  return FLHAL_OK;
}

Status pop_policy() {
  auto& scopes = thread_state().scopes;
  if (scopes.empty()) return fail(FLHAL_E_INVALID, "flhal_fallback_pop: this thread has pushed no policy");
  scopes.pop_back();
  return FLHAL_OK;
}

Status fallback_enter(Device* device, const char* op, const char* reason, uint64_t* out_ticket) {
  if (!op || !out_ticket) return fail(FLHAL_E_INVALID, "flhal_fallback_enter: op and out_ticket may not be NULL");
  if (!reason) reason = "";
  FLHAL_TRY(allow_fallback(*device, op, "CPU fallback", reason));
  if (__builtin_expect(log_enabled(kLogDebug), 0)) log(kLogDebug, "{} on {}: fallback ({})", op, device->name, *reason ? reason : "no reason given");
  uint64_t row = fallback_row(device->index, op, reason);
  *out_ticket = row << kTimeBits | (now_ns() & ((1ull << kTimeBits) - 1));
  return FLHAL_OK;
}

Status fallback_leave(uint64_t ticket, uint64_t bytes_to_host, uint64_t bytes_to_device, const char* call_site) {
  uint32_t row = static_cast<uint32_t>(ticket >> kTimeBits);
  constexpr uint64_t mask = (1ull << kTimeBits) - 1;
  uint64_t ns = (now_ns() - ticket) & mask;
  if (!count_off_chip(row, ns, bytes_to_host, bytes_to_device, call_site))
    return fail(FLHAL_E_INVALID, "flhal_fallback_leave: ticket {:#x} was not given by flhal_fallback_enter", ticket);
  thread_state().count(row);
  watch_threshold();
  return FLHAL_OK;
}

// Summing all threads' counts costs about a microsecond, so it is done only when the calls known so far do not already
// put the share below the threshold.
void watch_threshold() {
  Warnings& w = warnings();
  uint64_t off_chip = w.off_chip.fetch_add(1, std::memory_order_relaxed) + 1;
  if (w.threshold_said.load(std::memory_order_relaxed)) return;
  double threshold = config().fallback_threshold.load(std::memory_order_relaxed);
  uint64_t known = w.known_calls.load(std::memory_order_relaxed);
  if (known >= kCallsBeforeWarning && static_cast<double>(off_chip) <= threshold * static_cast<double>(known)) return;
  CallTotals totals = call_totals();
  w.known_calls.store(totals.calls, std::memory_order_relaxed);
  if (totals.calls < kCallsBeforeWarning) return;
  if (static_cast<double>(totals.off_chip) <= threshold * static_cast<double>(totals.calls)) return;
  if (!w.threshold_said.exchange(true)) say_threshold(totals, threshold);
}

void reset_fallback_warnings() {
  Warnings& w = warnings();
  std::lock_guard lock(w.mutex);
  w.said.clear();
  w.threshold_said.store(false);
  w.off_chip.store(0);
  w.known_calls.store(0);
}

}  // namespace flhal
