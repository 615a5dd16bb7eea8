// src/kernels/host/batch_norm.cc: batch normalisation; a "row" is a channel, over all images and places.
//
// Forward: RowsParams, out, x, save_mean, save_rstd, weight, bias, running_mean, running_var (0..7). f[0] eps, f[1] momentum.
// Training normalises by the batch and moves the running statistics (the variance with n / (n - 1)).
// Backward: RowsParams, gx, gw, gb, grad, x, weight, mean, rstd (0..7); outside of training `rstd` holds the running
// variance.
#include "kernels/host/norm.h"

LEVEL_BEGIN
namespace {

template <class T> FN T channel(const void* const* argv, const RowsParams* p, uint32_t k, uint64_t row) {
  return get_one<T>((const char*)argv[k + 1] + row_offset(p, row, k), p->kind[k]);
}
template <class T> FN void set_channel(const void* const* argv, const RowsParams* p, uint32_t k, uint64_t row, T value) {
  put_one<T>((char*)const_cast<void*>(argv[k + 1]) + row_offset(p, row, k), p->kind[k], value);
}

template <class T> FN void batch_norm(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  const int64_t length = (int64_t)p->length;
  alignas(64) T x_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> xs(p, 1);
  Writer<T> writer(p, 0);
  const T eps = (T)p->f[0], momentum = (T)p->f[1];
  for (uint64_t row = begin; row < end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* x = (const char*)argv[2] + row_offset(p, row, 1);
    T mean, rstd;
    if (p->flags & kTraining) {
      Moments<T> m = moments(xs, x, length, x_buffer, out_buffer);
      mean = m.mean;
      rstd = (T)1 / sqrt_of(m.variance + eps);
      if (p->flags & kHasRunningMean)
        set_channel<T>(argv, p, 6, row, ((T)1 - momentum) * channel<T>(argv, p, 6, row) + momentum * mean);
      if (p->flags & kHasRunningVar)
        set_channel<T>(argv, p, 7, row, ((T)1 - momentum) * channel<T>(argv, p, 7, row) +
                                            momentum * (m.variance * (T)length / (T)(length - 1)));
    } else {
      mean = channel<T>(argv, p, 6, row);
      rstd = (T)1 / sqrt_of(channel<T>(argv, p, 7, row) + eps);
    }
    if (p->flags & kHasMean) set_channel<T>(argv, p, 2, row, mean);
    if (p->flags & kHasRstd) set_channel<T>(argv, p, 3, row, rstd);
    T scale = p->flags & kHasWeight ? rstd * channel<T>(argv, p, 4, row) : rstd;
    T shift = p->flags & kHasBias ? channel<T>(argv, p, 5, row) : (T)0;
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      T* to = writer.place(out, i, out_buffer);
      NormText<T>::norm_scaled(to, xs.get(x, i, n, x_buffer), mean, scale, shift, n);
      writer.put(out, i, n, to);
    }
  }
}

template <class T> FN void batch_norm_backward(const void* const* argv, uint64_t first, uint64_t count) {
  using Sum = Reduce<Reduction_sum, T>;
  constexpr int64_t B = block_elements<T>();
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  const int64_t length = (int64_t)p->length;
  alignas(64) T g_buffer[B];
  alignas(64) T x_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> gs(p, 3), xs(p, 4);
  Writer<T> writer(p, 0);
  for (uint64_t row = begin; row < end; ++row) {
    const char* g = (const char*)argv[4] + row_offset(p, row, 3);
    const char* x = (const char*)argv[5] + row_offset(p, row, 4);
    T mean = channel<T>(argv, p, 6, row), rstd = channel<T>(argv, p, 7, row);
    if (!(p->flags & kTraining)) rstd = (T)1 / sqrt_of(rstd + (T)p->f[0]);
    typename Sum::STATE sum_g, sum_gx;
    Sum::reduce_begin(&sum_g);
    Sum::reduce_begin(&sum_gx);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* v = gs.get(g, i, n, g_buffer);
      Sum::reduce_block(&sum_g, v, n);
      NormText<T>::norm_hat_product(out_buffer, v, xs.get(x, i, n, x_buffer), mean, rstd, n);
      Sum::reduce_block(&sum_gx, out_buffer, n);
    }
    T gb = Sum::reduce_end(&sum_g), gw = Sum::reduce_end(&sum_gx);
    if (p->flags & kHasGradWeight) set_channel<T>(argv, p, 1, row, gw);
    if (p->flags & kHasGradBias) set_channel<T>(argv, p, 2, row, gb);
    if (!(p->flags & kHasGradInput)) continue;
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    T scale = p->flags & kHasWeight ? rstd * channel<T>(argv, p, 5, row) : rstd;
    T mean_g = p->flags & kTraining ? gb / (T)length : (T)0, mean_gx = p->flags & kTraining ? gw / (T)length : (T)0;
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      T* to = writer.place(out, i, out_buffer);
      NormText<T>::norm_slope(to, gs.get(g, i, n, g_buffer), xs.get(x, i, n, x_buffer), mean, rstd, mean_g, mean_gx, scale, n);
      writer.put(out, i, n, to);
    }
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(batch_norm_f32, batch_norm<float>)
KERNEL(batch_norm_f64, batch_norm<double>)
KERNEL(batch_norm_backward_f32, batch_norm_backward<float>)
KERNEL(batch_norm_backward_f64, batch_norm_backward<double>)

LEVEL_END
