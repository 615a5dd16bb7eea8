// src/layers/rules.h: the values of the settings `layers` and `faults`. No state; also part of flhal-probe, by way of config.
#pragma once

#include <flhal/scalars.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/slot_call.h"

namespace flhal::layers {

inline constexpr const char* kLayersValues = "none, or a comma list of validate, trace, fault and stats";
// Every form of a fault, every slot and the statuses, as the refusal of a wrong one lists them. Never null.
const char* fault_forms();

std::optional<uint32_t> parse_layers(std::string_view text);   // the bits of frame.h; "" and "none" are 0

struct Occasions {             // which calls: the n-th, or the n-th and every later one
  uint64_t from = 1;
  bool later_too = false;
  bool take(uint64_t nth) const { return later_too ? nth >= from : nth == from; }
};

struct FaultRule {
  enum What { kFail, kDelay, kReorder, kLose } what = kFail;
  std::string text;            // as written
  std::string plugin;          // id; "" = any
  SlotId slot = SlotId::kCount;
  Occasions when;
  flhal_status status = FLHAL_E_OP_FAILED;
  uint32_t ms = 0;             // kDelay: how long; kReorder: the most
  uint64_t seed = 0;
  int64_t device = -1;         // kLose: index in the plugin; -1 = whichever gets there
};
std::optional<std::vector<FaultRule>> parse_faults(std::string_view text);

const char* status_text(flhal_status status);   // "OK", "E_INVALID"; nullptr for no status of status.def
std::optional<SlotId> slot_named(std::string_view name);

}  // namespace flhal::layers
