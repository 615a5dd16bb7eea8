// src/layers/findings.h: what the layer validate has found, once per kind, slot and plugin, with the first occasion in words.
//
// Threads: any; one lock, a leaf.
#pragma once

#include <string>

#include "core/json_text.h"
#include "layers/slot_call.h"

namespace flhal::layers {

enum class Finding : uint8_t {
#define FLHAL_FINDING(name, whose, duty, level, what, remedy) name,
#include "layers/findings.def"
#undef FLHAL_FINDING
  kCount
};
enum class Whose : uint8_t { kPlugin, kCore, kProgram };
enum class Level : uint8_t { kError, kWarning };
struct FindingRow {
  const char* name;
  Whose whose;
  uint32_t duty;               // FLP-nnn; 0: none
  Level level;
  const char* what;
  const char* remedy;
};
const FindingRow& row_of(Finding finding);
const char* whose_name(Whose whose);

// `values`: what was found, with numbers. The first of a kind is logged.
void found(Finding finding, const SlotCall& call, std::string values);
void reset_findings();
void add_findings(cJSON* list);
uint64_t findings_count();     // kinds that were found; for tests

}  // namespace flhal::layers
