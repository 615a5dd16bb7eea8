// src/kernels/host/reduce.cc: reductions over rows (the reduced dimensions are inner) and over columns (they are outer).
//
// Arguments: RowsParams, out, x. Operand 0 is out, 1 is x; an output is a "row" of x.
#include "kernels/host/reduce.h"

LEVEL_BEGIN
namespace {

template <class R, class T> void over_rows(const RowsParams* p, char* out, const char* x, uint64_t begin, uint64_t end) {
  alignas(64) T buffer[block_elements<T>()];
  Reader<T> reader(p, 1);
  for (uint64_t row = begin; row < end; ++row) {
    T a = reduce_row<R, T>(reader, x + row_offset(p, row, 1), (int64_t)p->length, buffer);
    put_one(out + row_offset(p, row, 0), p->kind[0], R::template finish<T>(a, (double)p->length));
  }
}

// Steps through the reduced indices of a tile of outputs. Not inlined: one call per row of a tile.
struct ColumnRows {
  const RowDim* in;
  uint32_t n_inner;
  const char* base;
  int64_t n, step, offset;
  Load load;                     // null: rows are used as they lie
  int64_t at[kMaxRank];
};
__attribute__((noinline)) const void* next_row(ColumnRows& rows, void* buffer) {
  const char* from = rows.base + rows.offset;
  for (uint32_t d = 0; d < rows.n_inner; ++d) {
    rows.offset += rows.in[d].stride[1];
    if (++rows.at[d] < rows.in[d].size) break;
    rows.offset -= rows.at[d] * rows.in[d].stride[1];
    rows.at[d] = 0;
  }
  if (rows.load == nullptr) return from;
  rows.load(buffer, from, rows.n, rows.step, 1, 0);
  return buffer;
}

// The vector runs over neighbouring outputs; sums of 64 rows, then of 64 such sums, then of those.
template <class R, class T> void over_columns(const RowsParams* p, char* out, const char* x, uint64_t begin, uint64_t end) {
  constexpr int64_t kTile = block_elements<T>() / 2;
  alignas(64) T acc[kTile], second[kTile], third[kTile], buffer[4][kTile];
  const RowDim* in = p->dims + p->n_outer;
  const int64_t step = p->dims[0].stride[1];
  const bool direct = p->kind[1] == kComputeKind[ComputeIndex<T>::value] && step == (int64_t)sizeof(T);
  const Load load = load_table[p->kind[1]][ComputeIndex<T>::value];
  for (uint64_t row = begin; row < end;) {
    int64_t at0 = (int64_t)(row % (uint64_t)p->dims[0].size);
    int64_t n = min_of(min_of(p->dims[0].size - at0, (int64_t)(end - row)), kTile);
    const char* base = x + row_offset(p, row, 1);
    for (int64_t i = 0; i < n; ++i) acc[i] = second[i] = third[i] = R::template init<T>();
    ColumnRows rows{in, p->n_inner, base, n, step, 0, direct ? nullptr : load, {}};
    auto next = [&](int which) { return (const T*)next_row(rows, buffer[which]); };
    for (int64_t r = 0; r < (int64_t)p->length;) {
      if ((int64_t)p->length - r >= 4) {
        const T *a = next(0), *b = next(1), *c = next(2), *d = next(3);
        Reduce<R, T>::reduce_columns4(acc, a, b, c, d, n);
        r += 4;
      } else {
        Reduce<R, T>::reduce_columns(acc, next(0), n);
        ++r;
      }
      if (r % 64 == 0) Reduce<R, T>::reduce_columns_fold(second, acc, n);
      if (r % 4096 == 0) Reduce<R, T>::reduce_columns_fold(third, second, n);
    }
    Reduce<R, T>::reduce_columns_fold(second, acc, n);
    Reduce<R, T>::reduce_columns_fold(third, second, n);
    for (int64_t i = 0; i < n; ++i) third[i] = R::template finish<T>(third[i], (double)p->length);
    store_table[p->kind[0]][ComputeIndex<T>::value](out + row_offset(p, row, 0), third, n, p->dims[0].stride[0], 1, 0);
    row += (uint64_t)n;
  }
}

template <class R, class T> FN void reduce(const void* const* argv, uint64_t first, uint64_t count) {
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  if (begin >= end) return;
  char* out = (char*)const_cast<void*>(argv[1]);
  const char* x = (const char*)argv[2];
  if (p->columns) over_columns<R, T>(p, out, x, begin, end);
  else over_rows<R, T>(p, out, x, begin, end);
}

// Index of the largest (smallest) element; the first of equals; NaN beats all. In logical order over the row.
template <class R, class T> FN void arg(const void* const* argv, uint64_t first, uint64_t count) {
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  alignas(64) T buffer[block_elements<T>()];
  Reader<T> reader(p, 1);
  const int64_t length = (int64_t)p->length;
  for (uint64_t row = begin; row < end; ++row) {
    const char* x = (const char*)argv[2] + row_offset(p, row, 1);
    T best = reduce_row<R, T>(reader, x, length, buffer);
    int64_t found = -1;
    for (int64_t i = 0; i < length && found < 0; i += block_elements<T>()) {
      int64_t n = min_of(block_elements<T>(), length - i);
      const T* v = reader.get(x, i, n, buffer);
      for (int64_t j = 0; j < n; ++j)
        if (v[j] == best || v[j] != v[j]) { found = i + j; break; }
    }
    put_one<int64_t>((char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0), p->kind[0], found);
  }
}

// Two passes: the mean, then the squares of what is left. f[0] is the correction.
template <class T> FN void variance(const void* const* argv, uint64_t first, uint64_t count) {
  using Sum = Reduce<Reduction_sum, T>;
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  alignas(64) T buffer[block_elements<T>()];
  Reader<T> reader(p, 1);
  const int64_t length = (int64_t)p->length;
  for (uint64_t row = begin; row < end; ++row) {
    const char* x = (const char*)argv[2] + row_offset(p, row, 1);
    T mean = reduce_row<Reduction_sum, T>(reader, x, length, buffer) / (T)length;
    typename Sum::STATE state;
    Sum::reduce_begin(&state);
    for (int64_t i = 0; i < length; i += block_elements<T>()) {
      int64_t n = min_of(block_elements<T>(), length - i);
      const T* v = reader.get(x, i, n, buffer);
      IVDEP for (int64_t j = 0; j < n; ++j) buffer[j] = (v[j] - mean) * (v[j] - mean);
      Sum::reduce_block(&state, buffer, n);
    }
    double divisor = (double)length - p->f[0];
    put_one<T>((char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0), p->kind[0],
               Sum::reduce_end(&state) / (T)(divisor > 0 ? divisor : 0));
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
#define COMMA ,
#define OVER(name, suffix, T) KERNEL(name##_##suffix, reduce<Reduction_##name COMMA T>)
OVER(sum, f32, float) OVER(sum, f64, double) OVER(sum, i64, int64_t) OVER(sum, c128, complex128)
OVER(mean, f32, float) OVER(mean, f64, double) OVER(mean, c128, complex128)
OVER(prod, f32, float) OVER(prod, f64, double) OVER(prod, i64, int64_t)
OVER(amax, f32, float) OVER(amax, f64, double) OVER(amax, i64, int64_t)
OVER(amin, f32, float) OVER(amin, f64, double) OVER(amin, i64, int64_t)
OVER(norm2, f32, float) OVER(norm2, f64, double)
OVER(any, bool, bool8) OVER(all, bool, bool8)
KERNEL(argmax_f32, arg<Reduction_amax COMMA float>)
KERNEL(argmax_f64, arg<Reduction_amax COMMA double>)
KERNEL(argmax_i64, arg<Reduction_amax COMMA int64_t>)
KERNEL(argmin_f32, arg<Reduction_amin COMMA float>)
KERNEL(argmin_f64, arg<Reduction_amin COMMA double>)
KERNEL(argmin_i64, arg<Reduction_amin COMMA int64_t>)
KERNEL(var_f32, variance<float>)
KERNEL(var_f64, variance<double>)

LEVEL_END
