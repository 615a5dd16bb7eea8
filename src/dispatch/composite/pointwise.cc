// src/dispatch/composite/pointwise.cc: pointwise ops from simpler ones, for chips with few. Intermediate results are in
// the wide type, so that a half result is still rounded once.
#include <flhal/ops.h>

#include "dispatch/composite/composites.h"

namespace flhal::composite {

void square(Builder& b) {
  Part x = b.in(0), out = b.out(0);
  b.call(FLHAL_OP_MUL, {&out}, {&x, &x}, b.compute());
}

void reciprocal(Builder& b) {
  Part one = b.number(1), x = b.in(0), out = b.out(0);
  b.call(FLHAL_OP_DIV, {&out}, {&one, &x}, b.compute());
}

void rsqrt(Builder& b) {
  Part one = b.number(1), x = b.in(0), out = b.out(0), root = b.like(out, b.wide());
  b.call(FLHAL_OP_SQRT, {&root}, {&x}, b.wide());
  b.call(FLHAL_OP_DIV, {&out}, {&one, &root}, b.wide());
}

void silu(Builder& b) {
  Part x = b.in(0), out = b.out(0), gate = b.like(out, b.wide());
  b.call(FLHAL_OP_SIGMOID, {&gate}, {&x}, b.wide());
  b.call(FLHAL_OP_MUL, {&out}, {&x, &gate}, b.wide());
}

void relu(Builder& b) {
  Part zero = b.number(0), x = b.in(0), out = b.out(0);
  b.call(FLHAL_OP_MAXIMUM, {&out}, {&x, &zero}, b.compute());
}

void addcmul(Builder& b) {
  Part x = b.in(0), a1 = b.in(1), a2 = b.in(2), out = b.out(0), product = b.like(out, b.wide());
  b.call(FLHAL_OP_MUL, {&product}, {&a1, &a2}, b.wide());
  b.call(FLHAL_OP_ADD, {&out}, {&x, &product}, b.wide(), {float_attr(FLHAL_ATTR_ADD_ALPHA, b.view().number(0))});
}

void addcdiv(Builder& b) {
  Part x = b.in(0), a1 = b.in(1), a2 = b.in(2), out = b.out(0), quotient = b.like(out, b.wide());
  b.call(FLHAL_OP_DIV, {&quotient}, {&a1, &a2}, b.wide());
  b.call(FLHAL_OP_ADD, {&out}, {&x, &quotient}, b.wide(), {float_attr(FLHAL_ATTR_ADD_ALPHA, b.view().number(0))});
}

void lerp(Builder& b) {
  Part a1 = b.in(0), a2 = b.in(1), w = b.in(2), out = b.out(0);
  Part difference = b.like(out, b.wide()), moved = b.like(out, b.wide());
  b.call(FLHAL_OP_SUB, {&difference}, {&a2, &a1}, b.wide());
  b.call(FLHAL_OP_MUL, {&moved}, {&difference, &w}, b.wide());
  b.call(FLHAL_OP_ADD, {&out}, {&a1, &moved}, b.wide());
}

void clamp(Builder& b) {
  Part x = b.in(0), low = b.in(1), high = b.in(2), out = b.out(0);
  if (!low.given() && !high.given()) {
    b.call(FLHAL_OP_COPY, {&out}, {&x}, b.compute());
  } else if (!high.given()) {
    b.call(FLHAL_OP_MAXIMUM, {&out}, {&x, &low}, b.compute());
  } else if (!low.given()) {
    b.call(FLHAL_OP_MINIMUM, {&out}, {&x, &high}, b.compute());
  } else {
    Part raised = b.like(out, b.compute());
    b.call(FLHAL_OP_MAXIMUM, {&raised}, {&x, &low}, b.compute());
    b.call(FLHAL_OP_MINIMUM, {&out}, {&raised, &high}, b.compute());
  }
}

void masked_fill(Builder& b) {
  Part x = b.in(0), mask = b.in(1), value = b.in(2), out = b.out(0);
  b.call(FLHAL_OP_WHERE, {&out}, {&mask, &value, &x}, b.compute());
}

}  // namespace flhal::composite
