// src/kernels/host/shape.cc: cat, tril, triu and cumsum.
#include "kernels/host/rows.h"

LEVEL_BEGIN

extern const flhal_host_kernel pointwise_f32[kExprs], pointwise_f64[kExprs], pointwise_i64[kExprs], pointwise_c128[kExprs],
    copy_raw_table[5];

namespace {

// CatParams with one PointwiseParams per input, out, inputs. A unit is a chunk of one input, done by the copy kernels.
void cat(const void* const* argv, uint64_t first, uint64_t count) {
  const CatParams* c = (const CatParams*)argv[0];
  uint32_t input = 0;
  for (uint64_t unit = first; unit < first + count; ++unit) {
    while (input < c->n_inputs && unit >= c->groups_before[input + 1]) ++input;
    if (input == c->n_inputs) return;
    const PointwiseParams* p = (const PointwiseParams*)((const char*)c + c->offset[input]);
    const void* args[3] = {p, (const char*)argv[1] + p->pi[3], argv[2 + input]};   // pi[3]: where in out it begins
    uint64_t local = unit - c->groups_before[input];
    flhal_host_kernel run;
    if (c->converts >> input & 1) {
      Kind from = p->kind[1];
      run = from == kF16 || from == kBF16 || from == kF32 ? pointwise_f32[kExpr_copy]
            : from == kF64 ? pointwise_f64[kExpr_copy]
            : from == kC64 || from == kC128 ? pointwise_c128[kExpr_copy] : pointwise_i64[kExpr_copy];
    } else {
      run = copy_raw_table[__builtin_ctz(kKindBytes[p->kind[1]])];
    }
    run(args, local, 1);
  }
}

// PointwiseParams in logical order (dims[0] columns, dims[1] rows), out, x. pi[0] diagonal. A unit is a chunk of rows.
template <class T, bool kLower> FN void triangle(const void* const* argv, uint64_t first, uint64_t count) {
  const PointwiseParams* p = (const PointwiseParams*)argv[0];
  const int64_t columns = p->dims[0].size, d0 = p->dims[0].stride[0], s0 = p->dims[0].stride[1];
  if (columns == 0 || p->n == 0) return;
  uint64_t rows = p->n / (uint64_t)columns, end = (first + count) * p->chunk;
  if (end > rows) end = rows;
  for (uint64_t row = first * p->chunk; row < end; ++row) {
    uint64_t rest = row;
    int64_t to = 0, from = 0, i = (int64_t)(row % (uint64_t)p->dims[1].size);
    for (uint32_t d = 1; d < p->n_dims; ++d) {
      int64_t at = (int64_t)(rest % (uint64_t)p->dims[d].size);
      rest /= (uint64_t)p->dims[d].size;
      to += at * p->dims[d].stride[0];
      from += at * p->dims[d].stride[1];
    }
    char* t = (char*)const_cast<void*>(argv[1]) + to;
    const char* f = (const char*)argv[2] + from;
    int64_t cut = i + p->pi[0] + (kLower ? 1 : 0);          // tril keeps [0, cut), triu keeps [cut, columns)
    cut = max_of(0, min_of(columns, cut));
    T zero{};
    for (int64_t j = 0; j < cut; ++j) __builtin_memcpy(t + j * d0, kLower ? f + j * s0 : (const char*)&zero, sizeof(T));
    for (int64_t j = cut; j < columns; ++j) __builtin_memcpy(t + j * d0, kLower ? (const char*)&zero : f + j * s0, sizeof(T));
  }
}
struct Raw16 { uint64_t a, b; };

// RowsParams, out, x. Float sums are kept in double, as PyTorch does, integer ones in int64.
template <class T> FN void cumulate(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int64_t B = block_elements<T>();
  const RowsParams* p = (const RowsParams*)argv[0];
  uint64_t begin = first * p->rows_per_group, end = (first + count) * p->rows_per_group;
  if (end > p->n_rows) end = p->n_rows;
  alignas(64) T in_buffer[B];
  alignas(64) T out_buffer[B];
  Reader<T> reader(p, 1);
  Writer<T> writer(p, 0);
  for (uint64_t row = begin; row < end; ++row) {
    char* out = (char*)const_cast<void*>(argv[1]) + row_offset(p, row, 0);
    const char* x = (const char*)argv[2] + row_offset(p, row, 1);
    T sum{};
    for (int64_t i = 0; i < (int64_t)p->length; i += B) {
      int64_t n = min_of(B, (int64_t)p->length - i);
      const T* v = reader.get(x, i, n, in_buffer);
      T* to = writer.place(out, i, out_buffer);
      for (int64_t j = 0; j < n; ++j) to[j] = sum = add(sum, v[j]);
      writer.put(out, i, n, to);
    }
  }
}

}  // namespace

#define KERNEL(name, call) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { call(argv, first, count); }
#define COMMA ,
KERNEL(cat_any, cat)
KERNEL(tril_1, triangle<uint8_t COMMA true>)
KERNEL(tril_2, triangle<uint16_t COMMA true>)
KERNEL(tril_4, triangle<uint32_t COMMA true>)
KERNEL(tril_8, triangle<uint64_t COMMA true>)
KERNEL(tril_16, triangle<Raw16 COMMA true>)
KERNEL(triu_1, triangle<uint8_t COMMA false>)
KERNEL(triu_2, triangle<uint16_t COMMA false>)
KERNEL(triu_4, triangle<uint32_t COMMA false>)
KERNEL(triu_8, triangle<uint64_t COMMA false>)
KERNEL(triu_16, triangle<Raw16 COMMA false>)
KERNEL(cumsum_f64, cumulate<double>)
KERNEL(cumsum_i64, cumulate<int64_t>)
KERNEL(cumsum_c128, cumulate<complex128>)

LEVEL_END
