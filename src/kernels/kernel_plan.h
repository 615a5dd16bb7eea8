// src/kernels/kernel_plan.h: which portable kernel does a call, and with which arguments. Knows nothing of devices.
//
// Idea: make() looks at the class of a call (op, dtypes, ranks, layout class, static attributes) and picks a function and
// a way to compute its arguments; arguments() fills them for one concrete call. The kernel route launches them on the
// chip; the host route runs the same function from the ahead-of-time build over host_begin/end.
// Threads: a KernelPlan is immutable.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>
#include <memory>

namespace flhal::kernels {

inline constexpr uint32_t kMaxArgs = 32;

struct LaunchArgs {                     // on the caller's stack; not initialised
  uint64_t groups[3];
  uint32_t group_size[3];
  uint32_t n_args;
  flhal_p_arg args[kMaxArgs];           // MEMORY args: memory, offset, address taken from the operand
  int8_t operand[kMaxArgs];             // MEMORY args: index into call.tensors; -1 otherwise
  alignas(16) unsigned char values[1536];  // storage of VALUE args
  uint32_t values_used;
};

enum class Dialect : uint32_t { kHost };   // OpenCL C comes as a second value

class KernelPlan {
 public:
  virtual ~KernelPlan() = default;
  const char* function = nullptr;       // name in the dialect's module
  flhal_host_kernel host = nullptr;     // the ahead-of-time build of it
  uint64_t depends_on = 0;              // FLHAL_DEPENDS_*: what else must match for reuse
  virtual void arguments(const flhal_op_call_v1& call, LaunchArgs& out) const = 0;
};

// nullptr when no portable kernel does it; *reason is then a static text.
std::unique_ptr<KernelPlan> make_kernel_plan(const flhal_op_call_v1& proto, Dialect dialect, const char** reason);

// All ahead-of-time functions, as the module of the dialect "flhal-host-1".
const flhal_host_module* host_module();

}  // namespace flhal::kernels
