// src/layers/stats.cc: the counters and their two forms.
#include "layers/stats.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "core/config.h"
#include "core/fork_guard.h"
#include "core/log.h"
#include "layers/frame.h"

namespace flhal::layers {
namespace {

struct Counters {
  std::atomic<uint64_t> calls{0}, failures{0}, other_answers{0}, ns{0}, longest_ns{0}, bytes{0};
};
Counters g_counters[kFrames][kSlots];

struct Row {
  std::string plugin;
  const char* slot;
  uint64_t calls, failures, other_answers, ns, longest_ns, bytes;
};

std::vector<Row> rows() {
  std::vector<Row> all;
  for (int f = 0; f < frames_used(); ++f) {
    for (size_t s = 0; s < kSlots; ++s) {
      const Counters& c = g_counters[f][s];
      const uint64_t calls = c.calls.load(std::memory_order_relaxed);
      if (calls != 0)
        all.push_back({frame(f).id, kSlotInfos[s].name, calls, c.failures.load(std::memory_order_relaxed),
                       c.other_answers.load(std::memory_order_relaxed), c.ns.load(std::memory_order_relaxed),
                       c.longest_ns.load(std::memory_order_relaxed), c.bytes.load(std::memory_order_relaxed)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.ns > b.ns; });
  return all;
}

void tell_at_the_end() {
  if (forked() || (layers_on() & kStats) == 0 || config_source("layers") == "flhal_config_set") return;   // a program asks for the report
  const std::string text = stats_table();
  if (!text.empty()) log_text(kLogInfo, "layers: calls of plugins' slots\n" + text);
}

}  // namespace

void stats_begin() {
  static const int once = std::atexit(tell_at_the_end);   // not call_once: it asks for static thread storage of libstdc++
  (void)once;
}

void stats_after(const SlotCall& call) {
  Counters& c = g_counters[call.frame->index][static_cast<size_t>(call.slot)];
  const uint64_t ns = call.ns();
  c.calls.fetch_add(1, std::memory_order_relaxed);
  if (call.answer < 0) c.failures.fetch_add(1, std::memory_order_relaxed);
  if (call.answer > 0) c.other_answers.fetch_add(1, std::memory_order_relaxed);
  c.ns.fetch_add(ns, std::memory_order_relaxed);
  uint64_t longest = c.longest_ns.load(std::memory_order_relaxed);
  while (ns > longest && !c.longest_ns.compare_exchange_weak(longest, ns, std::memory_order_relaxed)) continue;
  if (call.answer == FLHAL_OK) c.bytes.fetch_add(bytes_of(call), std::memory_order_relaxed);
}

void forget_stats(int f) {
  for (Counters& c : g_counters[f])
    for (std::atomic<uint64_t>* counter : {&c.calls, &c.failures, &c.other_answers, &c.ns, &c.longest_ns, &c.bytes})
      counter->store(0, std::memory_order_relaxed);
}

void reset_stats() {
  for (int f = 0; f < kFrames; ++f) forget_stats(f);
}

void add_stats(cJSON* list) {
  for (const Row& row : rows()) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "plugin", row.plugin);
    json_add(item, "slot", row.slot);
    json_add_number(item, "calls", row.calls);
    json_add_number(item, "failures", row.failures);
    json_add_number(item, "other_answers", row.other_answers);
    cJSON_AddNumberToObject(item, "ms", static_cast<double>(row.ns) / 1e6);
    cJSON_AddNumberToObject(item, "ms_longest", static_cast<double>(row.longest_ns) / 1e6);
    json_add_number(item, "bytes", row.bytes);
  }
}

std::string stats_table() {
  const std::vector<Row> all = rows();
  if (all.empty()) return "";
  std::string text = fmt::format("{:<12} {:<20} {:>10} {:>8} {:>8} {:>12} {:>10} {:>16}", "plugin", "slot", "calls", "failed", "others",
                                 "ms", "us each", "bytes");
  for (const Row& r : all)
    text += fmt::format("\n{:<12} {:<20} {:>10} {:>8} {:>8} {:>12.3f} {:>10.2f} {:>16}", r.plugin, r.slot, r.calls, r.failures,
                        r.other_answers, static_cast<double>(r.ns) / 1e6, static_cast<double>(r.ns) / 1e3 / static_cast<double>(r.calls), r.bytes);
  return text;
}

}  // namespace flhal::layers
