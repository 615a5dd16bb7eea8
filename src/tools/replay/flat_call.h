// src/tools/replay/flat_call.h: one recorded call, as the layer trace wrote it.
#pragma once

#include <cjson/cJSON.h>

#include <memory>
#include <string>
#include <vector>

#include "layers/slot_call.h"

namespace flhal::replay {

using layers::Kind;
using layers::SlotId;
using layers::SlotInfo;

struct JsonDeleter { void operator()(cJSON* node) const { cJSON_Delete(node); } };

struct FlatCall {
  std::unique_ptr<cJSON, JsonDeleter> event;
  const cJSON* arguments = nullptr;      // into event
  SlotId slot = SlotId::kCount;
  uint64_t number = 0;                   // in the order of beginnings
  uint64_t place = 0;                    // where it is made again: a wait where it ended, all else where it began
  std::string plugin, answer, payload;   // payload: hexadecimal
  bool injected = false;

  const SlotInfo& info() const { return layers::info_of(slot); }
  const cJSON* argument(size_t i) const;
};

// The calls of a file in the order in which they are made again. Throws std::runtime_error with a sentence.
std::vector<FlatCall> read_calls(const std::string& path);

// Numbers above 2^53 are written as texts.
uint64_t number_of(const cJSON* node);
uint64_t number_of(const cJSON* object, const char* key);
std::vector<unsigned char> bytes_of_hex(const char* text);

}  // namespace flhal::replay
