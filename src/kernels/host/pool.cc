// src/kernels/host/pool.cc: max and average pooling over planes, and the gradient of max pooling.
//
// Arguments: PoolParams; max: out, index, x; max backward: gx, grad, index; average: out, x. A group is one plane.
// Max: the first of equals, the last NaN beats all (PyTorch's rule); the index counts in the plane of the input (row * width + column).
#include "kernels/host/rows.h"
#include "kernels/kernel_fault.h"

LEVEL_BEGIN
namespace {

// Columns of the input that a block of outputs along w touches, clipped to the row, as dense values.
template <class T> struct Columns {
  static constexpr int64_t B = block_elements<T>();
  alignas(64) T buffer[B];
  int64_t first = 0;

  static int64_t outputs(const PoolParams* p) {     // how many outputs fit a buffer of input columns
    int64_t n = (B - (p->kernel[1] - 1) * p->dilation[1] - 1) / p->stride[1] + 1;
    return n < 1 ? 1 : n;
  }
  const T* get(const PoolParams* p, const char* row, int64_t ow, int64_t n, Load load) {
    int64_t low = ow * p->stride[1] - p->padding[1], high = low + (n - 1) * p->stride[1] + (p->kernel[1] - 1) * p->dilation[1] + 1;
    first = max_of(0, low);
    high = min_of(p->in[1], high);
    if (high > first) load(buffer, row + first * p->x_at[1], min_of(high - first, B), p->x_at[1], 1, 0);
    return buffer;
  }
};

template <class T> FN void max_pool(const void* const* argv, uint64_t begin, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  const PoolParams* p = (const PoolParams*)argv[0];
  const Load load = load_table[p->x_kind][ComputeIndex<T>::value];
  const Store store = store_table[p->y_kind][ComputeIndex<T>::value];
  const Store store_index = store_table[p->i_kind][kCI64];
  Columns<T> columns;
  T best[B];
  int64_t where[B];
  const int64_t step = min_of(Columns<T>::outputs(p), B);
  for (uint64_t unit = begin; unit < begin + count && unit < (uint64_t)(p->images * p->channels); ++unit) {
    int64_t image = (int64_t)unit / p->channels, channel = (int64_t)unit % p->channels;
    char* out = (char*)const_cast<void*>(argv[1]) + image * p->y_image + channel * p->y_channel;
    char* index = (char*)const_cast<void*>(argv[2]) + image * p->i_image + channel * p->i_channel;
    const char* x = (const char*)argv[3] + image * p->x_image + channel * p->x_channel;
    for (int64_t oh = 0; oh < p->out[0]; ++oh)
      for (int64_t ow = 0; ow < p->out[1]; ow += step) {
        int64_t n = min_of(step, p->out[1] - ow);
        for (int64_t j = 0; j < n; ++j) { best[j] = lowest<T>(); where[j] = -1; }
        for (int64_t r = 0; r < p->kernel[0]; ++r) {
          int64_t ih = oh * p->stride[0] - p->padding[0] + r * p->dilation[0];
          if (ih < 0 || ih >= p->in[0]) continue;
          const T* row = columns.get(p, x + ih * p->x_at[0], ow, n, load);
          for (int64_t s = 0; s < p->kernel[1]; ++s)
            for (int64_t j = 0; j < n; ++j) {
              int64_t iw = (ow + j) * p->stride[1] - p->padding[1] + s * p->dilation[1];
              if (iw < 0 || iw >= p->in[1]) continue;
              T v = row[iw - columns.first];
              if (where[j] < 0 || v > best[j] || v != v) { best[j] = v; where[j] = ih * p->in[1] + iw; }
            }
        }
        store(out + oh * p->y_at[0] + ow * p->y_at[1], best, n, p->y_at[1], 1, 0);
        if (p->has_index) store_index(index + oh * p->i_at[0] + ow * p->i_at[1], where, n, p->i_at[1], 1, 0);
      }
  }
}

template <class T> FN void avg_pool(const void* const* argv, uint64_t begin, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  const PoolParams* p = (const PoolParams*)argv[0];
  const Load load = load_table[p->x_kind][ComputeIndex<T>::value];
  const Store store = store_table[p->y_kind][ComputeIndex<T>::value];
  Columns<T> columns;
  T sum[B];
  const int64_t step = min_of(Columns<T>::outputs(p), B);
  for (uint64_t unit = begin; unit < begin + count && unit < (uint64_t)(p->images * p->channels); ++unit) {
    int64_t image = (int64_t)unit / p->channels, channel = (int64_t)unit % p->channels;
    char* out = (char*)const_cast<void*>(argv[1]) + image * p->y_image + channel * p->y_channel;
    const char* x = (const char*)argv[2] + image * p->x_image + channel * p->x_channel;
    for (int64_t oh = 0; oh < p->out[0]; ++oh) {
      int64_t h0 = oh * p->stride[0] - p->padding[0], h1 = min_of(h0 + p->kernel[0], p->in[0] + p->padding[0]);
      int64_t rows_padded = h1 - h0;
      h0 = max_of(h0, 0);
      h1 = min_of(h1, p->in[0]);
      for (int64_t ow = 0; ow < p->out[1]; ow += step) {
        int64_t n = min_of(step, p->out[1] - ow);
        for (int64_t j = 0; j < n; ++j) sum[j] = T(0);
        for (int64_t ih = h0; ih < h1; ++ih) {
          const T* row = columns.get(p, x + ih * p->x_at[0], ow, n, load);
          for (int64_t j = 0; j < n; ++j) {
            int64_t w0 = (ow + j) * p->stride[1] - p->padding[1];
            for (int64_t iw = max_of(w0, 0); iw < min_of(w0 + p->kernel[1], p->in[1]); ++iw) sum[j] += row[iw - columns.first];
          }
        }
        for (int64_t j = 0; j < n; ++j) {
          int64_t w0 = (ow + j) * p->stride[1] - p->padding[1], w1 = min_of(w0 + p->kernel[1], p->in[1] + p->padding[1]);
          int64_t padded = rows_padded * (w1 - w0), inside = (h1 - h0) * (min_of(w1, p->in[1]) - max_of(w0, 0));
          int64_t divisor = p->divisor ? p->divisor : p->count_include_pad ? padded : inside;
          sum[j] = h1 > h0 && min_of(w1, p->in[1]) > max_of(w0, 0) ? sum[j] / (T)divisor : T(0);
        }
        store(out + oh * p->y_at[0] + ow * p->y_at[1], sum, n, p->y_at[1], 1, 0);
      }
    }
  }
}

template <class T> FN void max_pool_backward(const void* const* argv, uint64_t begin, uint64_t count) {
  const PoolParams* p = (const PoolParams*)argv[0];
  for (uint64_t unit = begin; unit < begin + count && unit < (uint64_t)(p->images * p->channels); ++unit) {
    int64_t image = (int64_t)unit / p->channels, channel = (int64_t)unit % p->channels, places = p->in[0] * p->in[1];
    char* gx = (char*)const_cast<void*>(argv[1]) + image * p->x_image + channel * p->x_channel;
    const char* grad = (const char*)argv[2] + image * p->y_image + channel * p->y_channel;
    const char* index = (const char*)argv[3] + image * p->i_image + channel * p->i_channel;
    T zero = T(0);
    for (int64_t h = 0; h < p->in[0]; ++h)
      for (int64_t w = 0; w < p->in[1]; ++w) put_one<T>(gx + h * p->x_at[0] + w * p->x_at[1], p->x_kind, zero);
    for (int64_t h = 0; h < p->out[0]; ++h)
      for (int64_t w = 0; w < p->out[1]; ++w) {
        int64_t i = get_one<int64_t>(index + h * p->i_at[0] + w * p->i_at[1], p->i_kind);
        if (i < 0 || i >= places) { fault(p->error, kFaultIndex, 2, i, places); continue; }
        char* to = gx + i / p->in[1] * p->x_at[0] + i % p->in[1] * p->x_at[1];
        put_one<T>(to, p->x_kind, get_one<T>(to, p->x_kind) + get_one<T>(grad + h * p->y_at[0] + w * p->y_at[1], p->y_kind));
      }
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
KERNEL(max_pool2d_f32, max_pool<float>)
KERNEL(max_pool2d_f64, max_pool<double>)
KERNEL(max_pool2d_i64, max_pool<int64_t>)
KERNEL(avg_pool2d_f32, avg_pool<float>)
KERNEL(avg_pool2d_f64, avg_pool<double>)
KERNEL(max_pool2d_backward_f32, max_pool_backward<float>)
KERNEL(max_pool2d_backward_f64, max_pool_backward<double>)

LEVEL_END
