// src/tools/replay/session.h: a plugin that recorded calls are made of again, and what their numbers mean now.
//
// Every slot is called through libffi by the kinds of its parameters, so a new row of slots.def needs nothing here unless it
// has a new kind of struct. All calls come from one thread, in the order of the record.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "replay/flat_call.h"

namespace flhal::replay {

struct Outcome {
  bool made = false;
  std::string why_not;                   // when it was not made
  flhal_status answer = FLHAL_OK;
  std::string text;                      // what the plugin left by set_error
  std::string difference;                // bytes that came back otherwise; "" for none
  double us = 0;
};

class Session {
 public:
  explicit Session(const std::string& plugin_path);   // throws std::runtime_error
  Outcome make(const FlatCall& call);
  const std::string& id() const { return id_; }

 private:
  friend class Arguments;
  struct Slab {
    flhal_p_memory* memory = nullptr;
    uint64_t bytes = 0, address = 0;
  };
  void* slot_address(SlotId slot) const;

  std::string id_;
  flhal_plugin_table_v1 table_{};
  flhal_ops_v1 ops_{};
  std::map<std::pair<Kind, uint64_t>, void*> handles_;   // number in the record -> what this plugin gave
  std::map<uint64_t, Slab> slabs_;
  std::map<uint64_t, std::string> functions_;            // number -> name
  std::map<uint64_t, std::deque<std::vector<unsigned char>>> in_flight_;   // stream -> host memory its queued copies use
};

}  // namespace flhal::replay
