// src/layers/rules.cc: reading the settings `layers` and `faults`.
#include "layers/rules.h"

#include <cctype>

#include "core/config_values.h"

namespace flhal::layers {
namespace {

struct Name {
  const char* name;
  uint32_t bit;
};
constexpr Name kLayers[] = {{"validate", 1}, {"trace", 2}, {"fault", 4}, {"stats", 8}};   // the bits of frame.h

struct StatusName {
  const char* name;
  flhal_status value;
};
constexpr StatusName kStatuses[] = {
#define X(name, value, meaning, remedy) {#name, value},
#include "core/status.def"
#undef X
};

// Cuts the text before `mark` off `rest`; all of it when there is none.
std::string_view cut(std::string_view& rest, char mark) {
  const size_t at = rest.find(mark);
  std::string_view first = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return trimmed(first);
}

std::optional<flhal_status> status_named(std::string_view text) {
  std::string upper;
  for (char c : text) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string_view name(upper);
  if (name.substr(0, 6) == "FLHAL_") name.remove_prefix(6);
  for (const StatusName& s : kStatuses) {
    std::string_view known(s.name);
    if (known == name || (known.substr(0, 2) == "E_" && known.substr(2) == name)) return s.value;
  }
  return std::nullopt;
}

std::optional<Occasions> occasions(std::string_view text) {
  Occasions when;
  if (text == "all") {
    when.later_too = true;
    return when;
  }
  when.later_too = !text.empty() && text.back() == '+';
  if (when.later_too) text.remove_suffix(1);
  auto n = parse_integer(text, 1, UINT32_MAX);
  if (!n) return std::nullopt;
  when.from = *n;
  return when;
}

// "[plugin/]slot"
bool take_slot(std::string_view text, FaultRule& rule) {
  const size_t slash = text.rfind('/');
  if (slash != std::string_view::npos) {
    rule.plugin = text.substr(0, slash);
    text = text.substr(slash + 1);
    if (rule.plugin.empty()) return false;
  }
  auto slot = slot_named(text);
  if (slot) rule.slot = *slot;
  return slot.has_value();
}

bool take_fail(std::string_view v, FaultRule& rule) {
  if (!take_slot(cut(v, ':'), rule)) return false;
  if (!info_of(rule.slot).answers) return false;          // it gives no status
  auto when = occasions(cut(v, ':'));
  if (!when) return false;
  rule.when = *when;
  if (v.empty()) return true;
  auto status = status_named(trimmed(v));
  if (status) rule.status = *status;
  return status && *status != FLHAL_OK;
}

bool take_delay(std::string_view v, FaultRule& rule) {
  if (!take_slot(cut(v, ':'), rule)) return false;
  auto when = occasions(cut(v, ':'));
  auto ms = parse_integer(trimmed(v), 1, 600000);
  if (!when || !ms) return false;
  rule.when = *when;
  rule.ms = static_cast<uint32_t>(*ms);
  return true;
}

bool take_reorder(std::string_view v, FaultRule& rule) {
  auto seed = parse_integer(cut(v, ':'), 0, UINT32_MAX);
  if (!seed) return false;
  rule.seed = *seed;
  rule.ms = 2;
  if (v.empty()) return true;
  auto ms = parse_integer(trimmed(v), 1, 60000);
  if (ms) rule.ms = static_cast<uint32_t>(*ms);
  return ms.has_value();
}

bool take_lose(std::string_view v, FaultRule& rule) {
  if (!v.empty() && (v.back() == '@' || v.back() == ':')) return false;
  auto n = parse_integer(cut(v, '@'), 1, UINT32_MAX);
  if (!n) return false;
  rule.when.from = *n;
  if (v.empty()) return true;
  rule.plugin = cut(v, ':');
  if (rule.plugin.empty()) return false;
  if (v.empty()) return true;
  auto device = parse_integer(trimmed(v), 0, UINT32_MAX);
  if (device) rule.device = static_cast<int64_t>(*device);
  return device.has_value();
}

struct Form {
  const char* name;
  FaultRule::What what;
  bool (*take)(std::string_view, FaultRule&);
  const char* shape;
};
constexpr Form kForms[] = {
    {"fail", FaultRule::kFail, take_fail, "fail=[plugin/]slot:n[:status]"},
    {"delay", FaultRule::kDelay, take_delay, "delay=[plugin/]slot:n:milliseconds"},
    {"reorder", FaultRule::kReorder, take_reorder, "reorder=seed[:milliseconds]"},
    {"lose", FaultRule::kLose, take_lose, "lose=n[@plugin[:device index]]"},
};

std::string forms_text() {
  std::string text = "a comma list of ";
  for (const Form& f : kForms) text += std::string(f.shape) + ", ";
  text += "where n is a number from 1, a number with + for that one and all later ones, or all; slot is one of";
  for (const SlotInfo& s : kSlotInfos) text += std::string(" ") + s.name + (s.answers ? "" : " (delay only)");
  text += "; and status is one of";
  for (const StatusName& s : kStatuses)
    if (s.value != FLHAL_OK) text += std::string(" ") + s.name;
  return text;
}

}  // namespace

const char* fault_forms() {
  static const std::string& text = *new std::string(forms_text());
  return text.c_str();
}

std::optional<SlotId> slot_named(std::string_view name) {
  for (size_t i = 0; i < kSlots; ++i)
    if (name == kSlotInfos[i].name) return static_cast<SlotId>(i);
  return std::nullopt;
}

const char* status_text(flhal_status status) {
  for (const StatusName& s : kStatuses)
    if (s.value == status) return s.name;
  return nullptr;
}

std::optional<uint32_t> parse_layers(std::string_view text) {
  text = trimmed(text);
  if (text == "none" || text.empty()) return 0;
  uint32_t bits = 0;
  while (!text.empty()) {
    const std::string_view name = cut(text, ',');
    bool known = false;
    for (const Name& layer : kLayers) {
      if (name != layer.name) continue;
      bits |= layer.bit;
      known = true;
    }
    if (!known) return std::nullopt;
  }
  return bits;
}

std::optional<std::vector<FaultRule>> parse_faults(std::string_view text) {
  std::vector<FaultRule> rules;
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view value = cut(text, ',');
    FaultRule rule;
    rule.text = value;
    const std::string_view name = cut(value, '=');
    bool taken = false;
    for (const Form& f : kForms) {
      if (name != f.name) continue;
      rule.what = f.what;
      taken = f.take(value, rule);
    }
    if (!taken) return std::nullopt;
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace flhal::layers
