// csrc/fallback_schema.h: what the fallback knows of an operator, read once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <string>
#include <vector>

namespace torch_fl {

enum class Refusal : uint8_t { kNone, kView, kFactory, kAsync, kDraws, kNoCpuKernel };

struct OpInfo {
  c10::OperatorName op{"", ""};
  std::string name;                        // "aten::softplus.out"
  Refusal refusal = Refusal::kNone;
  int generator_arg = -1;
  std::vector<bool> written;               // per argument: its memory (or that of its list's members) is written
  std::vector<bool> may_be_cpu;            // per argument: a CPU tensor with dimensions is legal beside device tensors
  std::vector<int> returns_arg;            // per result: the argument it is, or -1 for a new tensor
  mutable std::atomic<uint32_t> site_epoch{0};   // call site reported in this epoch of the report
};

const OpInfo& op_info(const c10::OperatorHandle& op);
// Raises NotImplementedError naming operator, policy and what to do.
[[noreturn]] void raise_refusal(const OpInfo& info, const char* reason);

}  // namespace torch_fl
