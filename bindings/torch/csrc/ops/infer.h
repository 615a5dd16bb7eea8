// csrc/ops/infer.h: what the results of a call look like, as PyTorch itself says.
//
// Idea: the very overload runs on meta tensors with the operands' sizes, strides and dtypes; sizes, strides, dtypes and every
// argument error are PyTorch's own (those that differ between Meta and CPU kernels: cpu_verdict.h). The answer is remembered per thread under all that it can depend on, in a direct-mapped
// table, so a training loop asks once per distinct call.
// Which kernel: `import torch` lays Python decompositions over nearly all C++ Meta kernels, and those are laxer (sub of bools and
// narrowing mul_ pass). The C++ shape functions of structured operators are still reached through a backend that has no kernels
// of its own; only what is not structured is asked of the Meta key.
// Cost: a hit about 60 ns; a miss 2 to 5 us by shape_functions.cc, else 100 to 400 us, most of it Python.
#pragma once

#include "csrc/ops/frame.h"

namespace torch_fl {

// Fills f.spec and f.compute. The spec lives until this thread's next infer(). Throws what torch's CPU operator throws; false, with a
// reason, when only the Meta kernel refuses.
bool infer(Frame& f);

// torch's C++ shape function of an overload, where shape_functions.cc lists it; nullptr otherwise.
const c10::KernelFunction* shape_function(const std::string& name);
const c10::KernelFunction* shape_function(const c10::OperatorHandle& op);

// Results of a convolution and of its backward in the memory format that torch's CPU gives them; torch's Meta kernel leaves them
// contiguous. In conv.cc. convolution_format: what of the operands decides.
uint32_t convolution_format(const Frame& f);
void lay_out_convolution(const Frame& f, Spec* spec);

// The arithmetic type of a call by row->promote.
c10::ScalarType compute_type(const Frame& f);

}  // namespace torch_fl
