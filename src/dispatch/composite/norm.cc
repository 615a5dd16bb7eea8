// src/dispatch/composite/norm.cc: softmax and layer_norm from pointwise ops and reductions.
#include <flhal/ops.h>

#include "dispatch/composite/composites.h"

namespace flhal::composite {
namespace {

uint32_t dimension(const Builder& b, uint32_t rank) {
  int64_t dim = b.view().integer(0);
  return static_cast<uint32_t>(dim < 0 ? dim + (rank ? rank : 1) : dim);
}

}  // namespace

// x - max, e^, divided by its sum: all in the wide type, rounded once into the output.
void softmax(Builder& b) {
  Part x = b.in(0), out = b.out(0);
  flhal_dtype wide = b.wide();
  uint32_t dim = dimension(b, x.rank);
  Part top = b.reduced(x, dim, wide), shifted = b.like(x, wide), powers = b.like(x, wide), sum = b.reduced(x, dim, wide);
  b.call(FLHAL_OP_AMAX, {&top}, {&x}, wide);
  b.call(FLHAL_OP_SUB, {&shifted}, {&x, &top}, wide);
  b.call(FLHAL_OP_EXP, {&powers}, {&shifted}, wide);
  b.call(FLHAL_OP_SUM, {&sum}, {&powers}, wide);
  b.call(FLHAL_OP_DIV, {&out}, {&powers, &sum}, wide);
}

void log_softmax(Builder& b) {
  Part x = b.in(0), out = b.out(0);
  flhal_dtype wide = b.wide();
  uint32_t dim = dimension(b, x.rank);
  Part top = b.reduced(x, dim, wide), shifted = b.like(x, wide), powers = b.like(x, wide);
  Part sum = b.reduced(x, dim, wide), logarithm = b.reduced(x, dim, wide);
  b.call(FLHAL_OP_AMAX, {&top}, {&x}, wide);
  b.call(FLHAL_OP_SUB, {&shifted}, {&x, &top}, wide);
  b.call(FLHAL_OP_EXP, {&powers}, {&shifted}, wide);
  b.call(FLHAL_OP_SUM, {&sum}, {&powers}, wide);
  b.call(FLHAL_OP_LOG, {&logarithm}, {&sum}, wide);
  b.call(FLHAL_OP_SUB, {&out}, {&shifted, &logarithm}, wide);
}

void softmax_backward(Builder& b) {
  Part grad = b.in(0), y = b.in(1), out = b.out(0);
  flhal_dtype wide = b.wide();
  uint32_t dim = dimension(b, y.rank);
  Part product = b.like(y, wide), sum = b.reduced(y, dim, wide), centred = b.like(y, wide);
  b.call(FLHAL_OP_MUL, {&product}, {&grad, &y}, wide);
  b.call(FLHAL_OP_SUM, {&sum}, {&product}, wide);
  b.call(FLHAL_OP_SUB, {&centred}, {&grad, &sum}, wide);
  b.call(FLHAL_OP_MUL, {&out}, {&y, &centred}, wide);
}

void log_softmax_backward(Builder& b) {
  Part grad = b.in(0), y = b.in(1), out = b.out(0);
  flhal_dtype wide = b.wide();
  uint32_t dim = dimension(b, y.rank);
  Part powers = b.like(y, wide), sum = b.reduced(y, dim, wide), scaled = b.like(y, wide);
  b.call(FLHAL_OP_SUM, {&sum}, {&grad}, wide);
  b.call(FLHAL_OP_EXP, {&powers}, {&y}, wide);
  b.call(FLHAL_OP_MUL, {&scaled}, {&powers, &sum}, wide);
  b.call(FLHAL_OP_SUB, {&out}, {&grad, &scaled}, wide);
}

// Two passes: the variance from the differences, as torch; one pass from squares would cancel.
void layer_norm(Builder& b) {
  Part x = b.in(0), weight = b.in(1), bias = b.in(2), out = b.out(0), out_mean = b.out(1), out_rstd = b.out(2);
  flhal_dtype wide = b.wide();
  uint32_t n = static_cast<uint32_t>(b.view().integer(0));
  Part epsilon = b.number(b.view().number(1));
  Part mean = out_mean.given() && out_mean.dtype == wide ? out_mean : b.reduced_tail(x, n, wide);
  Part rstd = out_rstd.given() && out_rstd.dtype == wide ? out_rstd : b.reduced_tail(x, n, wide);
  Part centred = b.like(x, wide), squares = b.like(x, wide);
  Part variance = b.reduced_tail(x, n, wide), shifted = b.reduced_tail(x, n, wide);
  b.call(FLHAL_OP_MEAN, {&mean}, {&x}, wide);
  b.call(FLHAL_OP_SUB, {&centred}, {&x, &mean}, wide);
  b.call(FLHAL_OP_MUL, {&squares}, {&centred, &centred}, wide);
  b.call(FLHAL_OP_MEAN, {&variance}, {&squares}, wide);
  b.call(FLHAL_OP_ADD, {&shifted}, {&variance, &epsilon}, wide);
  b.call(FLHAL_OP_RSQRT, {&rstd}, {&shifted}, wide);
  if (!weight.given() && !bias.given()) {
    b.call(FLHAL_OP_MUL, {&out}, {&centred, &rstd}, wide);
  } else {
    b.call(FLHAL_OP_MUL, {&squares}, {&centred, &rstd}, wide);   // squares' memory is free again
    if (!bias.given()) {
      b.call(FLHAL_OP_MUL, {&out}, {&squares, &weight}, wide);
    } else if (!weight.given()) {
      b.call(FLHAL_OP_ADD, {&out}, {&squares, &bias}, wide);
    } else {
      b.call(FLHAL_OP_MUL, {&centred}, {&squares, &weight}, wide);
      b.call(FLHAL_OP_ADD, {&out}, {&centred, &bias}, wide);
    }
  }
  if (out_mean.given() && out_mean.dtype != wide) b.call(FLHAL_OP_COPY, {&out_mean}, {&mean}, wide);
  if (out_rstd.given() && out_rstd.dtype != wide) b.call(FLHAL_OP_COPY, {&out_rstd}, {&rstd}, wide);
}

}  // namespace flhal::composite
