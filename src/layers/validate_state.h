// src/layers/validate_state.h: what the files of the layer validate share.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "layers/findings.h"
#include "layers/frame.h"
#include "layers/objects.h"
#include "layers/validate.h"

namespace flhal::layers {

// One answer of device_info.
struct KnownChip {
  std::array<uint8_t, 16> uuid{};
  uint64_t caps = 0;
  std::string dialects;
  std::vector<std::pair<const char*, std::string>> texts;   // where they lie, and what they said; until shutdown
};

struct Validation {                      // per frame
  Objects objects;
  std::map<uint32_t, KnownChip> chips;   // by index; also over a shutdown
  bool counted = false;
  uint32_t count = 0;
  std::vector<std::pair<int, SlotId>> threads;   // that began during its calls, and in which
  std::atomic<int> inside{0};            // calls running in the plugin
  std::atomic<uint64_t> inside_thread{0};     // who is the first of them
};
Validation& validation(int frame);
inline Validation& validation(const SlotCall& call) { return validation(call.frame->index); }

// The object of a handle that core gave: checked, or adopted when validate came later; nullptr when it is none (told).
Object* known(const SlotCall& call, Kind kind, const void* handle);
const KnownChip* chip_of(Validation& v, const Object* device);   // nullptr when not known
bool is_submission(SlotId slot);

// The parts that belong to single slots. The lock is held.
void check_arguments(const SlotCall& call, ValidateCall& checked);          // validate_arguments.cc
void check_answer(const SlotCall& call, ValidateCall& checked);             // validate_answers.cc
void note_order(const SlotCall& call, ValidateCall& checked);               // validate_order.cc: streams, events, missing waits
void check_device_call(const SlotCall& call);                               // validate_device.cc
void check_end(const SlotCall& call);                                       // validate_arguments.cc: something is given back

}  // namespace flhal::layers
