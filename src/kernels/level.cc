// src/kernels/level.cc: which instruction set level this machine gets.
#include <cstring>

#include "kernels/levels.h"

namespace flhal::kernels {

namespace base { extern const Level level_table; }
#if FLHAL_HAVE_X86_LEVELS
namespace v3 { extern const Level level_table; }
namespace v4 { extern const Level level_table; }
#endif

namespace {

const Level* find(const char* name) {
#if FLHAL_HAVE_X86_LEVELS
  __builtin_cpu_init();
  bool v3_runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                 __builtin_cpu_supports("bmi");
  bool v4_runs = v3_runs && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (v4_runs && (name == nullptr || std::strcmp(name, "v4") == 0)) return &v4::level_table;
  if (v3_runs && (name == nullptr || std::strcmp(name, "v3") == 0)) return &v3::level_table;
#endif
  if (name == nullptr || std::strcmp(name, "base") == 0) return &base::level_table;
  return nullptr;
}

const Level*& chosen() {
  static const Level* best = find(nullptr);
  return best;
}

}  // namespace

const Level& level() { return *chosen(); }

bool level_force(const char* name) {
  const Level* found = find(name);
  if (found != nullptr) chosen() = found;
  return found != nullptr;
}

}  // namespace flhal::kernels
