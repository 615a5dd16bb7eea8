// src/kernels/host/layer_norm.cc: layer normalisation, forward and backward, a row at a time.
//
// Forward: RowsParams, out, mean, rstd, x, weight, bias; operands have these numbers 0..5. Statistics in two passes over
// the row: the mean, then the squares of what is left. f[0] is eps.
// Backward: RowsParams, gx, grad, x, mean, rstd, weight, gw, gb (0..7). The first i[0] groups make rows of gx; the others
// make tiles of i[1] columns of gw and gb, each over all rows, so that no group waits for another.
#include "kernels/host/norm.h"

LEVEL_BEGIN
namespace {

template <class T> FN void layer_norm(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  const int64_t length = (int64_t)p->length;
  alignas(64) T x_buffer[B];
  alignas(64) T w_buffer[B];
  alignas(64) T b_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> xs(p, 3), ws(p, 4), bs(p, 5);
  Writer<T> writer(p, 0);
  for (uint64_t row = begin; row < end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* x = (const char*)argv[4] + row_offset(p, row, 3);
    const char* w = (const char*)argv[5];
    const char* b = (const char*)argv[6];
    Moments<T> m = moments(xs, x, length, x_buffer, out_buffer);
    T rstd = (T)1 / sqrt_of(m.variance + (T)p->f[0]);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* v = xs.get(x, i, n, x_buffer);
      T* to = writer.place(out, i, out_buffer);
      switch (p->flags & (kHasWeight | kHasBias)) {
        case kHasWeight | kHasBias:
          NormText<T>::norm_affine(to, v, ws.get(w, i, n, w_buffer), bs.get(b, i, n, b_buffer), m.mean, rstd, n);
          break;
        case kHasWeight: NormText<T>::norm_weighted(to, v, ws.get(w, i, n, w_buffer), m.mean, rstd, n); break;
        default:
          NormText<T>::norm_plain(to, v, m.mean, rstd, n);
          if (p->flags & kHasBias) NormText<T>::norm_shift(to, bs.get(b, i, n, b_buffer), n);
      }
      writer.put(out, i, n, to);
    }
    if (p->flags & kHasMean) put_one<T>((char*)const_cast<void*>(argv[2]) + row_offset(p, row, 1), p->kind[1], m.mean);
    if (p->flags & kHasRstd) put_one<T>((char*)const_cast<void*>(argv[3]) + row_offset(p, row, 2), p->kind[2], rstd);
  }
}

template <class T> void backward_rows(const RowsParams* p, const void* const* argv, uint64_t begin, uint64_t end) {
  using Sum = Reduce<Reduction_sum, T>;
  constexpr int64_t B = block_elements<T>();
  const int64_t length = (int64_t)p->length;
  alignas(64) T g_buffer[B];
  alignas(64) T x_buffer[B];
  alignas(64) T w_buffer[B];
  alignas(64) T gw_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> gs(p, 1), xs(p, 2), ws(p, 5);
  Writer<T> writer(p, 0);
  const char* w = (const char*)argv[6];
  for (uint64_t row = begin; row < end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* g = (const char*)argv[2] + row_offset(p, row, 1);
    const char* x = (const char*)argv[3] + row_offset(p, row, 2);
    T mean = get_one<T>((const char*)argv[4] + row_offset(p, row, 3), p->kind[3]);
    T rstd = get_one<T>((const char*)argv[5] + row_offset(p, row, 4), p->kind[4]);
    auto weighted = [&](int64_t i, int64_t n) {                 // grad times weight
      const T* v = gs.get(g, i, n, g_buffer);
      if (!(p->flags & kHasWeight)) return v;
      NormText<T>::norm_product(gw_buffer, v, ws.get(w, i, n, w_buffer), n);
      return (const T*)gw_buffer;
    };
    typename Sum::STATE sum_g, sum_gx;
    Sum::reduce_begin(&sum_g);
    Sum::reduce_begin(&sum_gx);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* v = weighted(i, n);
      Sum::reduce_block(&sum_g, v, n);
      NormText<T>::norm_hat_product(out_buffer, v, xs.get(x, i, n, x_buffer), mean, rstd, n);
      Sum::reduce_block(&sum_gx, out_buffer, n);
    }
    T mean_g = Sum::reduce_end(&sum_g) / (T)length, mean_gx = Sum::reduce_end(&sum_gx) / (T)length;
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* v = weighted(i, n);
      T* to = writer.place(out, i, out_buffer);
      NormText<T>::norm_slope(to, v, xs.get(x, i, n, x_buffer), mean, rstd, mean_g, mean_gx, rstd, n);
      writer.put(out, i, n, to);
    }
  }
}

// gw and gb of columns [at, at + n): sums of 64 rows, then sums of those.
template <class T> void backward_columns(const RowsParams* p, const void* const* argv, int64_t at, int64_t n) {
  constexpr int64_t kTile = block_elements<T>() / 4;
  alignas(64) T w1[kTile], w2[kTile], b1[kTile], b2[kTile], g_buffer[kTile], x_buffer[kTile];
  Reader<T> gs(p, 1), xs(p, 2);
  for (int64_t i = 0; i < n; ++i) w1[i] = w2[i] = b1[i] = b2[i] = 0;
  for (uint64_t row = 0; row < p->n_rows; ++row) {
    const T* g = gs.get((const char*)argv[2] + row_offset(p, row, 1), at, n, g_buffer);
    const T* x = xs.get((const char*)argv[3] + row_offset(p, row, 2), at, n, x_buffer);
    T mean = get_one<T>((const char*)argv[4] + row_offset(p, row, 3), p->kind[3]);
    T rstd = get_one<T>((const char*)argv[5] + row_offset(p, row, 4), p->kind[4]);
    IVDEP for (int64_t i = 0; i < n; ++i) {
      w1[i] += g[i] * ((x[i] - mean) * rstd);
      b1[i] += g[i];
    }
    if (row % 64 == 63 || row + 1 == p->n_rows)
      IVDEP for (int64_t i = 0; i < n; ++i) { w2[i] += w1[i]; b2[i] += b1[i]; w1[i] = b1[i] = 0; }
  }
  if (p->flags & kHasGradWeight) {
    Writer<T> writer(p, 6);
    char* to = (char*)const_cast<void*>(argv[7]);
    if (writer.direct) __builtin_memcpy((T*)to + at, w2, (uint64_t)n * sizeof(T));
    writer.put(to, at, n, w2);
  }
  if (p->flags & kHasGradBias) {
    Writer<T> writer(p, 7);
    char* to = (char*)const_cast<void*>(argv[8]);
    if (writer.direct) __builtin_memcpy((T*)to + at, b2, (uint64_t)n * sizeof(T));
    writer.put(to, at, n, b2);
  }
}

template <class T> FN void layer_norm_backward(const void* const* argv, uint64_t first, uint64_t count) {
  const RowsParams* p = (const RowsParams*)argv[0];
  const uint64_t row_groups = (uint64_t)p->i[0];
  for (uint64_t unit = first; unit < first + count; ++unit) {
    if (unit < row_groups) {
      uint64_t begin = unit * p->rows_per_group, end = begin + p->rows_per_group;
      backward_rows<T>(p, argv, begin, end < p->n_rows ? end : p->n_rows);
    } else if (p->flags & (kHasGradWeight | kHasGradBias)) {
      int64_t at = (int64_t)(unit - row_groups) * p->i[1];
      if (at < (int64_t)p->length) backward_columns<T>(p, argv, at, min_of(p->i[1], (int64_t)p->length - at));
    }
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(layer_norm_f32, layer_norm<float>)
KERNEL(layer_norm_f64, layer_norm<double>)
KERNEL(layer_norm_backward_f32, layer_norm_backward<float>)
KERNEL(layer_norm_backward_f64, layer_norm_backward<double>)

LEVEL_END
