// src/kernels/kernel_fault.cc: keeps the first fault of a call and turns it into a sentence.
#include "kernels/kernel_fault.h"

#include <fmt/core.h>

#include "kernels/kernel_plan.h"

namespace flhal::kernels {

void fault(KernelError* error, uint32_t code, int32_t dim, int64_t index, int64_t size) {
  if (error == nullptr) return;
  uint32_t none = 0;
  // Claim first, fill then: readers look only after the work has ended.
  if (!__atomic_compare_exchange_n(&error->code, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  error->dim = dim;
  error->index = index;
  error->size = size;
}

std::string kernel_error_text(const KernelError& error) {
  switch (error.code) {
    case kFaultIndex:
      return fmt::format("index {} is out of range for dimension {} of size {}", error.index, error.dim, error.size);
    case kFaultDivision:
      return "integer division by zero";
    default:
      return "";
  }
}

}  // namespace flhal::kernels
