// src/kernels/level.cc: which instruction set level this machine gets.
#include <cstring>

#include "kernels/levels.h"

namespace flhal::kernels {

namespace base { extern const Level level_table; }
#if FLHAL_HAVE_LEVEL_v3
namespace v3 { extern const Level level_table; }
#endif
#if FLHAL_HAVE_LEVEL_v4
namespace v4 { extern const Level level_table; }
#endif

namespace {

const Level* find(const char* name) {
#if FLHAL_HAVE_LEVEL_v3 || FLHAL_HAVE_LEVEL_v4
  __builtin_cpu_init();
  [[maybe_unused]] bool v3_runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  [[maybe_unused]] bool v4_runs = v3_runs && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                                  __builtin_cpu_supports("avx512vl");
#endif
#if FLHAL_HAVE_LEVEL_v4
  if (v4_runs && (name == nullptr || std::strcmp(name, "v4") == 0)) return &v4::level_table;
#endif
#if FLHAL_HAVE_LEVEL_v3
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
