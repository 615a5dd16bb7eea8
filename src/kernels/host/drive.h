// src/kernels/host/drive.h: walks the elements of a pointwise call and feeds dense runs to a block function.
#pragma once

#include "kernels/host/level.h"

LEVEL_BEGIN

// out[i] = f(in[0][i], ...) for n dense elements. out may be one of the inputs.
using Block = void (*)(void* out, const void* const* in, int64_t n, const PointwiseParams* p);
struct Signature {
  Block block;
  Compute out, in[3];
};
// argv: PointwiseParams, then the operands. Units first .. first+count-1 of p->chunk elements.
void drive(const Signature& signature, const void* const* argv, uint64_t first, uint64_t count);

LEVEL_END
