// csrc/ops/cpu_verdict.h: what torch's CPU operator says to a call, without its data.
//
// Two kinds of calls are asked about. Of those that have nothing to compute no kernel of ours would be run, so nobody else would
// notice that the CPU refuses their dtypes or numbers. And those that torch's Meta kernel refuses: its words and error classes are
// not always the CPU's, and some are refused by the Meta kernel alone.
// Idea: the CPU's operator runs on twins that have the sizes, strides and dtypes of the operands but hardly any memory.
#pragma once

#include "csrc/ops/frame.h"

namespace torch_fl {

// A result without elements, or operands without any.
bool nothing_to_compute(const Frame& f, const Spec& spec);
// False: there is nobody to ask, since the operator draws random numbers without a generator or has no CPU kernel.
bool has_cpu_verdict(const Frame& f);
// Raises what the CPU's operator raises; returns where it takes the call.
void ask_cpu(const Frame& f);

}  // namespace torch_fl
