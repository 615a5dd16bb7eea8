// src/kernels/target.h: for whom a kernel is planned: dialect and schedule are two axes.
#pragma once

#include <cstdint>

namespace flhal::kernels {

enum class Dialect : uint32_t { kHost, kOpenClC };
// kFat: few lanes that are cores; a work-item takes a contiguous chunk, groups have one work-item.
// kThin: many threads; a work-item takes one unit (an element, a row, a register tile), groups have 64.
enum class Schedule : uint32_t { kFat, kThin };

struct Target {
  Dialect dialect = Dialect::kHost;
  Schedule schedule = Schedule::kFat;
  bool fp64 = true;
  uint32_t vector_bytes = 32;      // of one register; picks the register tile of products
  uint32_t local_bytes = 262144;   // of work-group memory: scratch of a work-item in the fat schedule
};

}  // namespace flhal::kernels
