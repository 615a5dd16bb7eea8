// script.cc: parsing of the script, and the count of calls that decides which one fails.
#include "script.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

namespace mock {
namespace {

struct Key {
  const char* name;
  const char* form;     // shown to the user when a value does not parse
  bool (*parse)(std::string_view value, Script* script);
};

bool parse_number(std::string_view text, uint64_t* out) {
  if (text.empty() || text.size() > 18) return false;
  uint64_t n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    n = n * 10 + static_cast<uint64_t>(c - '0');
  }
  *out = n;
  return true;
}

bool parse_bool(std::string_view text, bool* out) {
  *out = text == "1";
  return text == "0" || text == "1";
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool parse_bytes(std::string_view text, uint64_t* out) {
  uint64_t unit = 1;
  for (auto [suffix, scale] : {std::pair<std::string_view, int>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (text.size() > 3 && text.substr(text.size() - 3) == suffix) {
      unit = 1ull << scale;
      text.remove_suffix(3);
      break;
    }
  }
  uint64_t n;
  if (!parse_number(text, &n) || n == 0 || n > (1ull << 46) / unit) return false;
  *out = n * unit;
  return true;
}

struct NamedDtype { const char* name; flhal_dtype dtype; };
constexpr NamedDtype kDtypes[] = {
    {"int8", FLHAL_I8}, {"int16", FLHAL_I16}, {"int32", FLHAL_I32}, {"int64", FLHAL_I64}, {"uint8", FLHAL_U8},
    {"uint16", FLHAL_U16}, {"uint32", FLHAL_U32}, {"uint64", FLHAL_U64}, {"float16", FLHAL_F16}, {"float32", FLHAL_F32},
    {"float64", FLHAL_F64}, {"bfloat16", FLHAL_BF16}, {"complex32", FLHAL_C32}, {"complex64", FLHAL_C64},
    {"complex128", FLHAL_C128}, {"bool", FLHAL_BOOL}};

bool parse_dtypes(std::string_view value, Script* s) {
  for (std::string_view name : split(value, '+')) {
    auto found = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const NamedDtype& d) { return name == d.name; });
    if (found == std::end(kDtypes)) return false;
    s->no_dtype.push_back(found->dtype);
    if (found->dtype == FLHAL_F64) s->no_fp64 = true;
    if (found->dtype == FLHAL_I64) s->no_int64 = true;
  }
  return true;
}

bool parse_code(std::string_view text, flhal_status* out) {
  if (text == "failed") return *out = FLHAL_E_OP_FAILED, true;
  if (text == "lost") return *out = FLHAL_E_DEVICE_LOST, true;
  if (text == "invalid") return *out = FLHAL_E_INVALID, true;
  if (text == "build") return *out = FLHAL_E_BUILD, true;
  if (text == "exhausted") return *out = FLHAL_EXHAUSTED, true;
  if (text == "declined") return *out = FLHAL_DECLINED, true;
  if (text == "vendor") return *out = FLHAL_E_VENDOR_LAST - 42, true;
  return false;
}

bool parse_fail(std::string_view value, Script* s, bool when_run) {
  auto parts = split(value, ':');
  if (parts.size() < 2 || parts.size() > 3) return false;
  FailRule rule{Slot::kCount, 0, FLHAL_E_OP_FAILED, when_run};
  for (uint32_t i = 0; i < static_cast<uint32_t>(Slot::kCount); ++i)
    if (parts[0] == slot_name(static_cast<Slot>(i))) rule.slot = static_cast<Slot>(i);
  if (rule.slot == Slot::kCount) return false;
  if (parts[1] == "all") rule.nth = 0;
  else if (!parse_number(parts[1], &rule.nth) || rule.nth == 0) return false;
  if (parts.size() == 3 && !parse_code(parts[2], &rule.code)) return false;
  s->fails.push_back(rule);
  return true;
}

constexpr Key kKeys[] = {
    {"delay_ms", "milliseconds, 0 to 60000",
     [](std::string_view v, Script* s) {
       uint64_t n;
       if (!parse_number(v, &n) || n > 60000) return false;
       s->delay_ms = static_cast<uint32_t>(n);
       return true;
     }},
    {"reorder", "0, or a seed", [](std::string_view v, Script* s) { return parse_number(v, &s->reorder_seed); }},
    {"fail_call", "<slot>:<n or all>[:failed|lost|invalid|build|exhausted|declined|vendor]",
     [](std::string_view v, Script* s) { return parse_fail(v, s, false); }},
    {"fail_work", "copy|fill|launch|plan_run:<n or all>[:failed|lost|vendor]",
     [](std::string_view v, Script* s) { return parse_fail(v, s, true); }},
    {"lose_after", "<number of submissions>[@a|@b]",
     [](std::string_view v, Script* s) {
       auto parts = split(v, '@');
       if (parts.size() == 2 && parts[1] == "a") s->lose_device = 0;
       else if (parts.size() == 2 && parts[1] == "b") s->lose_device = 1;
       else if (parts.size() != 1) return false;
       return parse_number(parts[0], &s->lose_after) && s->lose_after > 0;
     }},
    {"no_dtype", "names joined by +: int64+float64 ...", parse_dtypes},
    {"no_op", "names joined by +: add+matmul, or all",
     [](std::string_view v, Script* s) {
       for (auto name : split(v, '+')) s->no_op.emplace_back(name);
       return true;
     }},
    {"max_rows", "a number of rows, 0 for any", [](std::string_view v, Script* s) { return parse_number(v, &s->max_rows); }},
    {"memory", "bytes, e.g. 1MiB", [](std::string_view v, Script* s) { return parse_bytes(v, &s->memory_bytes); }},
    {"chips", "a, b, ab or none",
     [](std::string_view v, Script* s) {
       s->chips = v == "a" ? 1 : v == "b" ? 2 : v == "none" ? 0 : 3;
       return v == "a" || v == "b" || v == "ab" || v == "none";
     }},
    {"addresses", "ours, foreign or none",
     [](std::string_view v, Script* s) {
       using A = Script::Addresses;
       s->addresses = v == "none" ? A::kNone : v == "foreign" ? A::kForeign : A::kOurs;
       return v == "ours" || v == "foreign" || v == "none";
     }},
    {"no_streams", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_streams); }},
    {"no_events", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_events); }},
    {"no_kernels", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_kernels); }},
    {"no_ops", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_ops); }},
    {"no_host_access", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_host_access); }},
    {"no_fp64", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_fp64); }},
    {"no_int64", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_int64); }},
    {"no_timing", "0 or 1", [](std::string_view v, Script* s) { return parse_bool(v, &s->no_timing); }},
};

bool apply(std::string_view name, std::string_view value, Script* out, std::string* error) {
  for (const Key& key : kKeys) {
    if (name != key.name) continue;
    if (key.parse(value, out)) return true;
    *error = "mock: the script's " + std::string(name) + "=" + std::string(value) + " does not parse; it takes " + key.form;
    return false;
  }
  *error = "mock: the script has no key '" + std::string(name) + "'; valid keys are";
  for (const Key& key : kKeys) *error += std::string(&key == kKeys ? " " : ", ") + key.name;
  return false;
}

}  // namespace

const char* slot_name(Slot slot) {
  static constexpr const char* kNames[] = {
#define X(name) #name,
      MOCK_SLOTS(X)
#undef X
  };
  return slot < Slot::kCount ? kNames[static_cast<size_t>(slot)] : "?";
}

bool parse_script(const char* text, Script* out, std::string* error) {
  for (std::string_view entry : split(text, ',')) {
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    if (entry.empty()) continue;
    size_t at = entry.find('=');
    std::string_view value = at == std::string_view::npos ? std::string_view("1") : entry.substr(at + 1);
    if (!apply(entry.substr(0, at), value, out, error)) return false;
  }
  return true;
}

bool script_from_surroundings(const flhal_host_v1* host, Script* out, std::string* error) {
  if (const char* text = secure_getenv("FLHAL_MOCK"); text != nullptr && !parse_script(text, out, error)) return false;
  if (host == nullptr || host->config == nullptr) return true;
  for (const Key& key : kKeys) {
    const char* value = host->config((std::string("mock.") + key.name).c_str());
    if (value != nullptr && value[0] != '\0' && !apply(key.name, value, out, error)) return false;
  }
  return true;
}

static std::atomic<const Script*> g_script{nullptr};

const Script& script() {
  const Script* now = g_script.load(std::memory_order_acquire);
  if (now != nullptr) return *now;
  static const Script* const plain = new Script();
  return *plain;
}

void set_script(Script* script) {
  // Old scripts stay: a worker may still look at one. The list keeps leak checkers from calling them lost.
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<Script*>;
  {
    std::lock_guard lock(mutex);
    kept.push_back(script);
  }
  g_script.store(script, std::memory_order_release);
}

flhal_status scripted_failure(Slot slot, bool when_run) {
  const Script& s = script();
  auto& counter = (when_run ? s.runs : s.calls)[static_cast<size_t>(slot)];
  uint64_t n = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const FailRule& rule : s.fails)
    if (rule.slot == slot && rule.when_run == when_run && (rule.nth == 0 || rule.nth == n)) return rule.code;
  return FLHAL_OK;
}

}  // namespace mock
