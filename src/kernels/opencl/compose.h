// src/kernels/opencl/compose.h: from a host plan and one call of its class to the same kernel as OpenCL C text.
//
// Idea: the host plan's arguments() works out the geometry for every dialect; its VALUE structs are what the texts declare
// too. A TextPlan adds what the other side needs: bases of slabs with byte offsets behind the arguments, doubles narrowed
// where the arithmetic is float, sizes of the schedule, a place for faults.
// Which text, and what its macros are, is one row per family in the other files of this folder.
#pragma once

#include <functional>
#include <string>

#include "kernels/families.h"
#include "kernels/target.h"
#include "kernels/text_kernel.h"

namespace flhal::kernels {

inline constexpr uint32_t kMaxTextMemory = 8;          // operands of a text; offset 7 is that of the faults where there are any

// What a family says about its text.
struct TextShape {
  const char* text = nullptr;                          // "text/pointwise.clk"
  std::string defines;                                 // in front of the prelude
  std::string after;                                   // behind prelude and operand macros
  Compute compute = kCF32;
  const char* raw_type = nullptr;                      // instead of a compute type: bytes move
  bool math = true;                                    // needs prelude/opencl_math.h
  uint32_t n_operands = 0;
  Kind kind[8] = {};
  bool truth[8] = {};                                  // the operand is read as a condition
  bool whole[8] = {};                                  // the operand is a whole number (an index), whatever the compute type
  uint32_t stand_in = 0;                               // an operand that, where absent, is given operand 0's memory: one text for both
  uint32_t params_bytes = 0;                           // sizeof of the VALUE struct in the text
  uint32_t doubles_at = 0, doubles = 0;                // double fields in it: narrowed for float arithmetic
  uint32_t local_bytes = 0;                            // scratch of a work-item (fat schedule)
  // Units per work-item and number of work-items, for the schedule; changes params in place.
  std::function<void(unsigned char* params, LaunchArgs& out, Schedule schedule)> schedule;
};

// One function per family: false and a reason when the text does not do it. `name` is the host function's name without its
// type; `params` the first VALUE of `args`.
struct TextRequest {
  const Call& proto;
  const LaunchArgs& args;
  const unsigned char* params;
  std::string base, type;                              // "softmax", "f32"
  const Target& target;
};
using ShapeMaker = bool (*)(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_pointwise(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_rows(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_matmul(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_conv(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_pool(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_index(const TextRequest& request, TextShape& shape, const char** reason);
bool shape_series(const TextRequest& request, TextShape& shape, const char** reason);

PlanPtr make_text_plan(PlanPtr host, const Call& proto, const Target& target, const char** reason);

// Groups for `units` work-items.
inline void set_units(LaunchArgs& out, uint64_t units, Schedule schedule) {
  const uint32_t local = schedule == Schedule::kFat ? 1 : 64;
  out.group_size[0] = local;
  out.groups[0] = units <= local ? 1 : (units + local - 1) / local;
}

}  // namespace flhal::kernels
