// src/kernels/host/series.cc: outputs that depend on the element's number: arange and random numbers.
//
// Arguments: SeriesParams, out. Elements are numbered in logical order whatever the layout, so the same seed gives the
// same tensor in any layout, chunking and on any chip.
#include "kernels/host/rows.h"
#include "kernels/host/walk.h"

LEVEL_BEGIN
namespace {

#include "kernels/text/philox.clk"

constexpr int64_t kBlock = 512;

// make(first, n, buffer) for the elements of the groups, then out.
template <class T, class Make> FN void series(const void* const* argv, uint64_t first, uint64_t count, Make make) {
  const SeriesParams* s = (const SeriesParams*)argv[0];
  const PointwiseParams* p = &s->walk;
  uint64_t begin = first * p->chunk, end = (first + count) * p->chunk;
  if (end > p->n) end = p->n;
  if (begin >= end) return;
  char* out = (char*)const_cast<void*>(argv[1]);
  const Store store = store_table[p->kind[0]][ComputeIndex<T>::value];
  T buffer[kBlock];
  Walk walk{p, {}};
  walk.seek(begin);
  for (uint64_t at = begin; at < end;) {
    int64_t n = min_of(kBlock, (int64_t)(end - at));
    make(s, at, n, buffer);
    rectangles(walk, 0, n, [&](int64_t i, int64_t offset, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
      store(out + offset, buffer + i, n0, s0, n1, s1);
    });
    at += (uint64_t)n;
  }
}

// one(words, word) for every element.
template <class T, class One> FN void per_word(const SeriesParams* s, uint64_t at, int64_t n, T* to, One one) {
  for (int64_t i = 0; i < n;) {
    WORDS w = philox(s->seed, s->offset + (at + (uint64_t)i) / 4);
    for (uint64_t k = (at + (uint64_t)i) % 4; k < 4 && i < n; ++k, ++i) to[i] = one(w, (int)k);
  }
}

FN int bits_of(Kind kind) { return kind == kF16 ? 11 : kind == kBF16 ? 8 : 24; }

void uniform(const void* const* argv, uint64_t first, uint64_t count) {   // from + u * (to - from)
  series<float>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, float* to) {
    const float from = (float)s->f[0], width = (float)(s->f[1] - s->f[0]);
    const int bits = bits_of(s->walk.kind[0]);
    per_word(s, at, n, to, [=](const WORDS& w, int k) { return from + random_unit(w.w[k], bits) * width; });
  });
}
void uniform64(const void* const* argv, uint64_t first, uint64_t count) {  // 32 bits: one word per element
  series<double>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, double* to) {
    const double from = s->f[0], width = s->f[1] - s->f[0];
    per_word(s, at, n, to, [=](const WORDS& w, int k) { return from + (double)w.w[k] / 4294967296.0 * width; });
  });
}
void normal(const void* const* argv, uint64_t first, uint64_t count) {
  series<float>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, float* to) {
    const float mean = (float)s->f[0], deviation = (float)s->f[1];
    for (int64_t i = 0; i < n;) {
      float four[4];
      random_normal(philox(s->seed, s->offset + (at + (uint64_t)i) / 4), four);
      for (uint64_t k = (at + (uint64_t)i) % 4; k < 4 && i < n; ++k, ++i) to[i] = mean + deviation * four[k];
    }
  });
}
void bernoulli(const void* const* argv, uint64_t first, uint64_t count) {  // 1 with probability p
  series<float>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, float* to) {
    const float p = (float)s->f[0];
    per_word(s, at, n, to, [=](const WORDS& w, int k) { return random_unit(w.w[k], 24) < p ? 1.0f : 0.0f; });
  });
}
// [from, to): one word modulo the width; above 2^32 the next word of the block gives the low half.
void randint(const void* const* argv, uint64_t first, uint64_t count) {
  series<int64_t>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, int64_t* to) {
    const uint64_t from = (uint64_t)s->i[0], width = (uint64_t)s->i[1] - from;
    per_word(s, at, n, to, [=](const WORDS& w, int k) {
      uint64_t word = w.w[k];
      if (width > 0xffffffffu || width == 0) word = word << 32 | w.w[(k + 1) % 4];
      return (int64_t)(from + (width == 0 ? word : word % width));
    });
  });
}
void arange_float(const void* const* argv, uint64_t first, uint64_t count) {
  series<double>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, double* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = s->f[0] + s->f[1] * (double)(at + (uint64_t)i);
  });
}
void arange_int(const void* const* argv, uint64_t first, uint64_t count) {
  series<int64_t>(argv, first, count, [](const SeriesParams* s, uint64_t at, int64_t n, int64_t* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = (int64_t)((uint64_t)s->i[0] + (uint64_t)s->i[1] * (at + (uint64_t)i));
  });
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(random_uniform_f32, uniform)
KERNEL(random_uniform_f64, uniform64)
KERNEL(random_normal_f32, normal)
KERNEL(random_bernoulli_f32, bernoulli)
KERNEL(random_randint_i64, randint)
KERNEL(arange_f64, arange_float)
KERNEL(arange_i64, arange_int)

LEVEL_END
