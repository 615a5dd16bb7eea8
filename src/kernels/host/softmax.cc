// src/kernels/host/softmax.cc: softmax and its relatives, one row after the other.
//
// Forward: RowsParams, out, x. Backward: RowsParams, gx, grad, y. Three passes over a row in blocks; the exponentials are
// kept in the output where it is dense and of the compute type, and computed again where it is not.
#include "kernels/host/reduce.h"

LEVEL_BEGIN
namespace {

template <class T> struct Text {
#include "kernels/text/softmax.clk"
};

template <class T> struct Range {
  const RowsParams* p;
  uint64_t begin, end;
  Range(const void* const* argv, uint64_t first, uint64_t count) : p((const RowsParams*)argv[0]) {
    begin = first * p->rows_per_group;
    end = (first + count) * p->rows_per_group;
    if (end > p->n_rows) end = p->n_rows;
  }
};

template <class T, bool kLog> void forward(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  using Sum = Reduce<Reduction_sum, T>;
  Range<T> range(argv, first, count);
  const RowsParams* p = range.p;
  const int64_t length = (int64_t)p->length;
  alignas(64) T in_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> reader(p, 1);
  Writer<T> writer(p, 0);
  for (uint64_t row = range.begin; row < range.end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* x = (const char*)argv[2] + row_offset(p, row, 1);
    T top = reduce_row<Reduction_amax, T>(reader, x, length, in_buffer);
    const bool keep = !kLog && writer.direct;
    typename Sum::STATE state;
    Sum::reduce_begin(&state);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      T* to = keep ? writer.place(out, i, out_buffer) : out_buffer;
      Text<T>::softmax_exp(to, reader.get(x, i, n, in_buffer), top, n);
      Sum::reduce_block(&state, to, n);
    }
    T sum = Sum::reduce_end(&state), factor = (T)1 / sum, log_sum = kLog ? log_of(sum) : (T)0;
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      T* to = writer.place(out, i, out_buffer);
      if (keep) { Text<T>::softmax_scale(to, to, factor, n); continue; }
      const T* v = reader.get(x, i, n, in_buffer);
      if (kLog) {
        Text<T>::log_softmax_shift(to, v, top, log_sum, n);
      } else {
        Text<T>::softmax_exp(to, v, top, n);
        Text<T>::softmax_scale(to, to, factor, n);
      }
      writer.put(out, i, n, to);
    }
  }
}

template <class T, bool kLog> void backward(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  using Sum = Reduce<Reduction_sum, T>;
  Range<T> range(argv, first, count);
  const RowsParams* p = range.p;
  const int64_t length = (int64_t)p->length;
  alignas(64) T grad_buffer[B];
  alignas(64) T y_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> grads(p, 1), ys(p, 2);
  Writer<T> writer(p, 0);
  for (uint64_t row = range.begin; row < range.end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* grad = (const char*)argv[2] + row_offset(p, row, 1);
    const char* y = (const char*)argv[3] + row_offset(p, row, 2);
    typename Sum::STATE state;
    Sum::reduce_begin(&state);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* g = grads.get(grad, i, n, grad_buffer);
      if (!kLog) {
        Text<T>::softmax_product(out_buffer, g, ys.get(y, i, n, y_buffer), n);
        g = out_buffer;
      }
      Sum::reduce_block(&state, g, n);
    }
    T dot = Sum::reduce_end(&state);
    for (int64_t i = 0; i < length; i += B) {
      int64_t n = min_of(B, length - i);
      const T* g = grads.get(grad, i, n, grad_buffer);
      const T* v = ys.get(y, i, n, y_buffer);
      T* to = writer.place(out, i, out_buffer);
      if (kLog) Text<T>::log_softmax_slope(to, g, v, dot, n);
      else Text<T>::softmax_slope(to, g, v, dot, n);
      writer.put(out, i, n, to);
    }
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
#define COMMA ,
KERNEL(softmax_f32, forward<float COMMA false>)
KERNEL(softmax_f64, forward<double COMMA false>)
KERNEL(log_softmax_f32, forward<float COMMA true>)
KERNEL(log_softmax_f64, forward<double COMMA true>)
KERNEL(softmax_backward_f32, backward<float COMMA false>)
KERNEL(softmax_backward_f64, backward<double COMMA false>)
KERNEL(log_softmax_backward_f32, backward<float COMMA true>)
KERNEL(log_softmax_backward_f64, backward<double COMMA true>)

LEVEL_END
