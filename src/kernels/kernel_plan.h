// src/kernels/kernel_plan.h: which portable kernel does a call, and with which arguments. Knows nothing of devices.
//
// Idea: make() looks at the class of a call (op, dtypes, ranks, layout class, static attributes) and picks a function and
// a way to compute its arguments; arguments() fills them for one concrete call. The kernel route launches them on the
// chip; the host route runs the same function from the ahead-of-time build over host_begin/end.
// Threads: a KernelPlan is immutable.
#pragma once

#include <flhal/plugin.h>

#include "kernels/kernel_fault.h"
#include "kernels/params.h"
#include "kernels/target.h"
#include "kernels/text_kernel.h"

#include <cstdint>
#include <memory>
#include <string>

namespace flhal::kernels {

inline constexpr uint32_t kMaxArgs = 64;

// Where a kernel tells that its data were bad (an index out of range, an integer division by zero). Kernels never follow
// a bad index: they clamp it, write the first fault here, and go on.
//
// For the launcher: when plan.can_fail is set, point LaunchArgs::error to a zeroed KernelError before arguments(); it must
// live until the work has ended. Afterwards, if code != 0, the call failed with FLHAL_E_INVALID and kernel_error_text().
struct KernelError {
  uint32_t code = 0;                    // kFault*; 0 = none
  int32_t dim = 0;
  int64_t index = 0, size = 0;
};
struct TextFault {                      // as kernels of a text dialect write it into the chip's memory; the first one stays
  KernelError error;
  uint64_t call_number = 0;             // LaunchArgs::call_number of the call that wrote it
};
std::string kernel_error_text(const KernelError& error);   // "index 7 is out of range for dimension 0 of size 5"

struct LaunchArgs {                     // on the caller's stack; not initialised, but for `error`
  KernelError* error = nullptr;         // in: see KernelError; nullptr = faults go unheard
  // In, for texts: where the chip keeps a TextFault, as a slab with its address (or 0) and an offset.
  flhal_p_memory* error_memory = nullptr;
  uint64_t error_offset = 0, error_address = 0, call_number = 0;
  uint64_t groups[3];
  uint32_t group_size[3];
  uint32_t n_args;
  flhal_p_arg args[kMaxArgs];           // MEMORY args: memory, offset, address taken from the operand
  int8_t operand[kMaxArgs];             // MEMORY args: index into call.tensors; -1 otherwise
  alignas(16) unsigned char values[12288];  // storage of VALUE args
  uint32_t values_used;
};

// A kernel whose operands are all of one dtype and one dense shape: everything is known but how many elements there are.
struct DenseForm {
  DenseParams params;                   // argument 0
  uint8_t operand[kMaxPointwise];       // of the call, for the arguments from 1 on
  void set_elements(uint64_t n, DenseParams& of, uint64_t* groups) const {
    of = params;
    of.n = n;
    of.dims[0].size = static_cast<int64_t>(n);
    *groups = n <= params.chunk ? 1 : (n + params.chunk - 1) / params.chunk;
  }
};

class KernelPlan {
 public:
  virtual ~KernelPlan() = default;
  const char* function = nullptr;       // name in the dialect's module
  flhal_host_kernel host = nullptr;     // the ahead-of-time build of it
  const TextKernel* text = nullptr;     // the source to compile, where the dialect is one of text
  uint64_t depends_on = 0;              // FLHAL_DEPENDS_*: what else must match for reuse
  bool can_fail = false;                // set LaunchArgs::error before arguments(), look at it after the work
  // groups[0] is 1 or more, also for an empty call; VALUE bytes are aligned to 16 and must stay so if copied. Threads that
  // run host kernels need 512 KiB of stack (packing buffers of the matrix kernels).
  virtual void arguments(const flhal_op_call_v1& call, LaunchArgs& out) const = 0;
  // What arguments() would fill for calls of the plan's class without attributes whose operands are all given, none a host
  // scalar, and all of one dtype and one dense shape; nullptr when they need arguments() all the same. Lives with the plan.
  virtual const DenseForm* dense() const { return nullptr; }
};

// nullptr when no portable kernel does it; *reason is then a static text.
std::unique_ptr<KernelPlan> make_kernel_plan(const flhal_op_call_v1& proto, const Target& target, const char** reason);

// All ahead-of-time functions, as the module of the dialect "flhal-host-1".
const flhal_host_module* host_module();

}  // namespace flhal::kernels
