// src/layers/fault.cc: rules in force, their counts, lost devices and late events.
//
// Threads: one mutex guards everything; it is not held while a call sleeps or runs.
#include "layers/fault.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "core/event.h"
#include "core/host_services.h"
#include "layers/frame.h"

namespace flhal::layers {
namespace {

struct Rule {
  FaultRule rule;
  uint64_t seen = 0, struck = 0;
};

struct OfFrame {
  std::unordered_map<const void*, const void*> owner;      // stream, event, module, plan -> its device
  std::unordered_map<const void*, uint32_t> index;         // device -> index in the plugin
  std::unordered_map<const void*, std::string> lost;       // device -> the rule that lost it
  std::unordered_map<const void*, uint64_t> late_until;    // event or stream -> until when it is said to be unfinished
};

std::mutex& g_mutex = *new std::mutex;
std::vector<Rule>& g_rules = *new std::vector<Rule>;
std::vector<OfFrame>& g_frames_state = *new std::vector<OfFrame>(kFrames);
std::mt19937_64& g_random = *new std::mt19937_64;

bool is_submission(SlotId slot) { return slot == SlotId::copy || slot == SlotId::fill || slot == SlotId::launch || slot == SlotId::plan_run; }

bool of_plugin(const FaultRule& rule, const SlotCall& call) { return rule.plugin.empty() || rule.plugin == call.frame->id; }

// The device a call is about: its first argument, or the owner of that.
const void* device_of(const SlotCall& call, OfFrame& state) {
  const Kind kind = call.info().kinds[0];
  const void* first = from_word<const void*>(call.words[0]);
  if (kind == Kind::kDevice) return first;
  auto found = state.owner.find(first);
  return found == state.owner.end() ? nullptr : found->second;
}

void answer(SlotCall& call, flhal_status status, const std::string& rule) {
  call.injected = true;
  call.answer = status;
  if (status < 0) leave_plugin_error(status, 0, fmt::format("the layer fault answered here: {}", rule).c_str());
}

}  // namespace

void set_faults(std::vector<FaultRule> rules) {
  std::lock_guard lock(g_mutex);
  bool same = rules.size() == g_rules.size();
  for (size_t i = 0; same && i < rules.size(); ++i) same = rules[i].text == g_rules[i].rule.text;
  if (same) return;
  g_rules.clear();
  for (FaultRule& rule : rules) {
    if (rule.what == FaultRule::kReorder) g_random.seed(rule.seed);
    g_rules.push_back({std::move(rule)});
  }
  for (OfFrame& state : g_frames_state) {
    state.lost.clear();
    state.late_until.clear();
  }
}

void fault_before(SlotCall& call) {
  uint64_t sleep_ms = 0, late_until = 0;
  {
    std::lock_guard lock(g_mutex);
    OfFrame& state = g_frames_state[size_t(call.frame->index)];
    const void* device = device_of(call, state);
    for (Rule& r : g_rules) {
      const FaultRule& rule = r.rule;
      if (!of_plugin(rule, call)) continue;
      if (rule.what == FaultRule::kLose && is_submission(call.slot) && device != nullptr && !state.lost.count(device) &&
          (rule.device < 0 || state.index[device] == static_cast<uint64_t>(rule.device))) {
        if (++r.seen > rule.when.from && r.struck == 0) {      // once: a device that was reset works again
          ++r.struck;
          state.lost.emplace(device, rule.text);
        }
      }
      if ((rule.what == FaultRule::kFail || rule.what == FaultRule::kDelay) && rule.slot == call.slot && !call.injected &&
          rule.when.take(++r.seen)) {
        ++r.struck;
        if (rule.what == FaultRule::kFail) answer(call, rule.status, rule.text);
        else sleep_ms += rule.ms;
      }
    }
    if (!call.injected && device != nullptr && call.info().answers)
      if (auto lost = state.lost.find(device); lost != state.lost.end()) answer(call, FLHAL_E_DEVICE_LOST, lost->second);
    if (call.slot == SlotId::event_synchronize || call.slot == SlotId::stream_synchronize)
      if (auto late = state.late_until.find(from_word<const void*>(call.words[0])); late != state.late_until.end()) late_until = late->second;
    if (call.slot == SlotId::event_destroy || call.slot == SlotId::stream_destroy) state.late_until.erase(from_word<const void*>(call.words[0]));
    if (call.slot == SlotId::device_close) state.lost.erase(device);
  }
  if (sleep_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
  if (const uint64_t now = late_until ? now_ns() : 0; now < late_until) std::this_thread::sleep_for(std::chrono::nanoseconds(late_until - now));
}

void fault_after(SlotCall& call) {
  if (call.injected || call.answer != FLHAL_OK) return;
  std::lock_guard lock(g_mutex);
  OfFrame& state = g_frames_state[size_t(call.frame->index)];
  const void* first = from_word<const void*>(call.words[0]);
  const SlotInfo& info = call.info();
  if (call.slot == SlotId::device_open) state.index[*call.argument<flhal_p_device**>(2)] = call.argument<uint32_t>(1);
  if (info.kinds[0] == Kind::kDevice)            // what was made belongs to the device
    for (size_t i = 1; i < info.n; ++i)
      if (is_out_handle(info.kinds[i])) state.owner[*call.argument<const void**>(i)] = first;
  if (call.slot == SlotId::event_record) {
    for (Rule& r : g_rules) {
      if (r.rule.what != FaultRule::kReorder || !of_plugin(r.rule, call)) continue;
      ++r.seen;
      ++r.struck;
      uint64_t& stream = state.late_until[from_word<const void*>(call.words[1])];   // never done before its events are
      state.late_until[first] = now_ns() + g_random() % (uint64_t{r.rule.ms} * 1000000 + 1);
      stream = std::max(stream, state.late_until[first]);
    }
  }
  if (call.slot == SlotId::event_query || call.slot == SlotId::stream_query)
    if (auto late = state.late_until.find(first); late != state.late_until.end()) {
      if (now_ns() < late->second) call.answer = FLHAL_NOT_READY;
      else state.late_until.erase(late);
    }
}

void forget_faults(int frame) {
  std::lock_guard lock(g_mutex);
  g_frames_state[size_t(frame)] = {};
}

void add_faults(cJSON* list) {
  std::lock_guard lock(g_mutex);
  for (const Rule& r : g_rules) {
    cJSON* item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    json_add(item, "rule", r.rule.text);
    json_add_number(item, "calls", r.seen);
    json_add_number(item, "struck", r.struck);
  }
}

}  // namespace flhal::layers
