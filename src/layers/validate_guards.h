// src/layers/validate_guards.h: output structs that the plugin gets instead of core's, with a watch behind them.
#pragma once

#include <flhal/plugin.h>

#include <cstring>
#include <vector>

#include "layers/slot_call.h"

namespace flhal::layers {

template <typename T>
struct Guarded {
  T value{};
  unsigned char watch[64];
  explicit Guarded(const T& given) : value(given) { std::memset(watch, 0xa5, sizeof watch); }
  bool intact() const {
    for (unsigned char c : watch)
      if (c != 0xa5) return false;
    return true;
  }
};

struct Guards {
  std::unique_ptr<Guarded<flhal_p_slab_v1>> slab;
  std::unique_ptr<Guarded<flhal_plan_info_v1>> plan;
  std::unique_ptr<flhal_p_source_v1> source;
  std::vector<char> log;
  uint64_t word = 0;                     // what core gave
};

// Puts guards in the place of core's structs; core's come back, with what was written, by take_guards_back.
void put_guards(SlotCall& call, ValidateCall& checked);
void take_guards_back(SlotCall& call, ValidateCall& checked);

}  // namespace flhal::layers
