// csrc/ops/infer.h: what the results of a call look like, as PyTorch itself says.
//
// Idea: the Meta kernel of the same overload runs on meta tensors with the operands' sizes, strides and dtypes; sizes,
// strides, dtypes and every argument error are its own. The answer is remembered per thread under all that it can depend
// on, in a direct-mapped table, so a training loop asks once per distinct call.
// Cost: a hit about 60 ns; a miss 5 to 50 us (some Meta kernels are Python).
#pragma once

#include "csrc/ops/frame.h"

namespace torch_fl {

// Fills f.spec and f.compute. The spec lives until this thread's next infer(). Throws what the Meta kernel throws.
void infer(Frame& f);

// The arithmetic type of a call by row->promote.
c10::ScalarType compute_type(const Frame& f);

}  // namespace torch_fl
