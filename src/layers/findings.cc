// src/layers/findings.cc: the list, and the sentence a reader gets.
#include "layers/findings.h"

#include <map>
#include <mutex>
#include <tuple>

#include "core/log.h"
#include "layers/frame.h"

namespace flhal::layers {
namespace {

constexpr FindingRow kRows[] = {
#define FLHAL_FINDING(name, whose, duty, level, what, remedy) {#name, Whose::whose, duty, Level::level, what, remedy},
#include "layers/findings.def"
#undef FLHAL_FINDING
};

struct Seen {
  uint64_t times = 0, first_call = 0;
  std::string values;
};
using Key = std::tuple<Finding, std::string, SlotId>;   // finding, plugin, slot
std::mutex& g_mutex = *new std::mutex;
auto& g_seen = *new std::map<Key, Seen>;

std::string duty_text(uint32_t duty) { return duty ? fmt::format("FLP-{:03}", duty) : ""; }

}  // namespace

const FindingRow& row_of(Finding finding) { return kRows[static_cast<size_t>(finding)]; }

const char* whose_name(Whose whose) {
  constexpr const char* kNames[] = {"plugin", "flhal", "program"};
  return kNames[static_cast<size_t>(whose)];
}

void found(Finding finding, const SlotCall& call, std::string values) {
  const FindingRow& row = row_of(finding);
  {
    std::lock_guard lock(g_mutex);
    Seen& seen = g_seen[{finding, call.frame->id, call.slot}];
    if (++seen.times > 1) return;
    seen.first_call = call.number;
    seen.values = values;
  }
  const std::string duty = duty_text(row.duty);
  const std::string text = fmt::format("validate: {} of plugin {}, call {}: {}: {}; {}{}{}", call.info().name, call.frame->id, call.number, row.what,
                                       values, row.remedy, duty.empty() ? "" : "; breaks ", duty);
  log(row.level == Level::kError ? kLogError : kLogWarn, "{}", text);
}

void reset_findings() {
  std::lock_guard lock(g_mutex);
  g_seen.clear();
}

uint64_t findings_count() {
  std::lock_guard lock(g_mutex);
  return g_seen.size();
}

void add_findings(cJSON* list) {
  std::lock_guard lock(g_mutex);
  for (const auto& [key, seen] : g_seen) {
    const auto& [finding, plugin, slot] = key;
    const FindingRow& row = row_of(finding);
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "finding", row.name);
    json_add(item, "level", row.level == Level::kError ? "error" : "warning");
    json_add(item, "whose", whose_name(row.whose));
    json_add(item, "plugin", plugin);
    json_add(item, "slot", info_of(slot).name);
    json_add_if(item, "duty", duty_text(row.duty));
    json_add(item, "what", row.what);
    json_add(item, "values", seen.values);
    json_add(item, "remedy", row.remedy);
    json_add_number(item, "times", seen.times);
    json_add_number(item, "first_call", seen.first_call);
  }
}

}  // namespace flhal::layers
