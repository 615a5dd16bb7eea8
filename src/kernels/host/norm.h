// src/kernels/host/norm.h: what the normalisations share: their text and the moments of a row.
#pragma once

#include "kernels/host/reduce.h"
#include "kernels/norm_flags.h"

LEVEL_BEGIN

template <class T> struct NormText {
#include "kernels/text/norm.clk"
};

template <class T> struct Moments { T mean, variance; };   // variance: divided by the number of elements

template <class T> FN Moments<T> moments(const Reader<T>& xs, const char* x, int64_t length, T* x_buffer, T* work) {
  using Sum = Reduce<Reduction_sum, T>;
  Moments<T> m;
  m.mean = reduce_row<Reduction_sum, T>(xs, x, length, x_buffer) / (T)length;
  typename Sum::STATE state;
  Sum::reduce_begin(&state);
  for (int64_t i = 0; i < length; i += block_elements<T>()) {
    int64_t n = min_of(block_elements<T>(), length - i);
    NormText<T>::norm_squares(work, xs.get(x, i, n, x_buffer), m.mean, n);
    Sum::reduce_block(&state, work, n);
  }
  m.variance = Sum::reduce_end(&state) / (T)length;
  return m;
}

LEVEL_END
