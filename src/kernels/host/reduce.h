// src/kernels/host/reduce.h: text/reduce.clk for one reduction and one type, and the kernels that feed it.
#pragma once

#include "kernels/host/rows.h"

LEVEL_BEGIN

#define LOWEST lowest<T>()
#define HIGHEST highest<T>()
#define REDUCTION(name, cls, init_, lift_, merge_, finish_)                                                       \
  struct Reduction_##name {                                                                                       \
    template <class T> FN T init() { return init_; }                                                              \
    template <class T, class V> FN V lift(V x) { return lift_; }                                                  \
    template <class T, class V> FN V merge(V a, V b) { return merge_; }                                           \
    template <class T> FN T finish(T a, [[maybe_unused]] double n) { return finish_; }                            \
  };
#include "kernels/reductions.def"
#undef REDUCTION
#undef LOWEST
#undef HIGHEST

template <class R, class T> struct Reduce {
#define LANES Lanes<T>
#define REGISTERS Lanes<T>::registers
#define LANE_COUNT Lanes<T>::lanes
#define REGISTER_LANES Lanes<T>::per
#define INIT Lanes<T>::splat(R::template init<T>())
#define LIFT(x) R::template lift<T, typename Lanes<T>::vec>(x)
#define MERGE(a, b) R::template merge<T, typename Lanes<T>::vec>(a, b)
#define SCALAR_INIT R::template init<T>()
#define SCALAR_LIFT(x) R::template lift<T, T>(x)
#define SCALAR_MERGE(a, b) R::template merge<T, T>(a, b)
#define SMALL_BLOCKS 0
#include "kernels/text/reduce.clk"
#undef LANES
#undef REGISTERS
#undef LANE_COUNT
#undef REGISTER_LANES
#undef INIT
#undef LIFT
#undef MERGE
#undef SCALAR_INIT
#undef SCALAR_LIFT
#undef SCALAR_MERGE
#undef SMALL_BLOCKS
};

// Over a whole row.
template <class R, class T> FN T reduce_row(const Reader<T>& reader, const char* row, int64_t length, T* buffer) {
  typename Reduce<R, T>::STATE state;
  Reduce<R, T>::reduce_begin(&state);
  for (int64_t i = 0; i < length; i += block_elements<T>()) {
    int64_t n = min_of(block_elements<T>(), length - i);
    Reduce<R, T>::reduce_block(&state, reader.get(row, i, n, buffer), n);
  }
  return Reduce<R, T>::reduce_end(&state);
}

LEVEL_END
