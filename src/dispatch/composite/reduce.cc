// src/dispatch/composite/reduce.cc: reductions from sum and pointwise ops.
#include <flhal/ops.h>

#include "dispatch/composite/composites.h"

namespace flhal::composite {
namespace {

double reduced_elements(const Part& x, const Part& out) {
  double n = 1;
  for (uint32_t d = 0; d < x.rank; ++d)
    if (out.sizes[d] == 1) n *= static_cast<double>(x.sizes[d]);
  return n;
}

}  // namespace

void mean(Builder& b) {
  Part x = b.in(0), out = b.out(0), sum = b.like(out, b.wide());
  Part n = b.number(reduced_elements(x, out));
  b.call(FLHAL_OP_SUM, {&sum}, {&x}, b.wide());
  b.call(FLHAL_OP_DIV, {&out}, {&sum, &n}, b.wide());
}

void norm2(Builder& b) {
  Part x = b.in(0), out = b.out(0), squares = b.like(x, b.wide()), sum = b.like(out, b.wide());
  b.call(FLHAL_OP_MUL, {&squares}, {&x, &x}, b.wide());
  b.call(FLHAL_OP_SUM, {&sum}, {&squares}, b.wide());
  b.call(FLHAL_OP_SQRT, {&out}, {&sum}, b.wide());
}

void var(Builder& b) {
  Part x = b.in(0), out = b.out(0);
  double n = reduced_elements(x, out) - b.view().number(0);
  Part divisor = b.number(n > 0 ? n : 0);
  Part mean = b.like(out, b.wide()), centred = b.like(x, b.wide()), squares = b.like(x, b.wide());
  Part sum = b.like(out, b.wide());
  b.call(FLHAL_OP_MEAN, {&mean}, {&x}, b.wide());
  b.call(FLHAL_OP_SUB, {&centred}, {&x, &mean}, b.wide());
  b.call(FLHAL_OP_MUL, {&squares}, {&centred, &centred}, b.wide());
  b.call(FLHAL_OP_SUM, {&sum}, {&squares}, b.wide());
  b.call(FLHAL_OP_DIV, {&out}, {&sum, &divisor}, b.wide());
}

}  // namespace flhal::composite
