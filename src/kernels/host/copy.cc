// src/kernels/host/copy.cc: strided copies between memories of one type, by element size. Also fill: a source stride of 0.
#include "kernels/host/level.h"

LEVEL_BEGIN
namespace {

struct Raw16 { uint64_t a, b; };

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// PointwiseParams, dst, src. Elements of the range are walked row by row; a square of rows is copied in tiles when the
// source is dense along the second dimension, so that a transposed matrix does not touch one cache line per element.
template <class T> void copy_raw(const void* const* argv, uint64_t first, uint64_t count) {
  const PointwiseParams* p = (const PointwiseParams*)argv[0];
  uint64_t begin = first * p->chunk, end = (first + count) * p->chunk;
  if (end > p->n) end = p->n;
  if (begin >= end) return;
  char* dst = (char*)const_cast<void*>(argv[1]);
  const char* src = (const char*)argv[2];
  const int64_t bytes = (int64_t)sizeof(T), inner = p->dims[0].size;
  const int64_t d0 = p->dims[0].stride[0], s0 = p->dims[0].stride[1];
  int64_t at[kMaxRank];
  uint64_t rest = begin;
  for (uint32_t d = 0; d < p->n_dims; ++d) {
    at[d] = (int64_t)(rest % (uint64_t)p->dims[d].size);
    rest /= (uint64_t)p->dims[d].size;
  }
  auto row = [&](char* to, const char* from, int64_t n) {
    if (d0 == bytes && s0 == bytes) {
      __builtin_memcpy(to, from, (uint64_t)(n * bytes));
    } else if (s0 == 0) {
      T v;
      __builtin_memcpy(&v, from, sizeof(T));
      if (d0 == bytes)
        for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * bytes, &v, sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * d0, &v, sizeof(T));
    } else if (d0 == bytes) {
      for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * bytes, from + i * s0, sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * d0, from + i * s0, sizeof(T));
    }
  };
  const bool tiles = p->n_dims > 1 && s0 != bytes && s0 != 0 && p->dims[1].stride[1] == bytes && inner >= 16;
  for (uint64_t done = begin; done < end;) {
    int64_t to = 0, from = 0;
    for (uint32_t d = 0; d < p->n_dims; ++d) { to += at[d] * p->dims[d].stride[0]; from += at[d] * p->dims[d].stride[1]; }
    if (tiles && at[0] == 0 && (int64_t)(end - done) >= inner) {
      // A square with edges of one cache line goes through a buffer: every line of either side is touched once, and a
      // stride of 4 KiB does not throw its own lines out.
      constexpr int64_t kEdge = sizeof(T) >= 16 ? 4 : 64 / (int64_t)sizeof(T);
      T square[kEdge][kEdge];
      int64_t rows = smaller(smaller(p->dims[1].size - at[1], (int64_t)(end - done) / inner), kEdge);
      const int64_t d1 = p->dims[1].stride[0];
      for (int64_t i = 0; i < inner; i += kEdge) {
        int64_t n = smaller(kEdge, inner - i);
        const char* f = src + from + i * s0;
        char* t = dst + to + i * d0;
        if (rows == kEdge && n == kEdge && d0 == bytes) {
          for (int64_t k = 0; k < kEdge; ++k) __builtin_memcpy(square[k], f + k * s0, sizeof(square[k]));
          for (int64_t r = 0; r < kEdge; ++r) {
            T line[kEdge];
            for (int64_t k = 0; k < kEdge; ++k) line[k] = square[k][r];
            __builtin_memcpy(t + r * d1, line, sizeof(line));
          }
        } else {
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < n; ++k) __builtin_memcpy(t + r * d1 + k * d0, f + r * bytes + k * s0, sizeof(T));
        }
      }
      done += (uint64_t)(rows * inner);
      at[1] += rows;
      for (uint32_t d = 1; at[d] == p->dims[d].size && d + 1 < p->n_dims;) { at[d] = 0; ++at[++d]; }
      continue;
    }
    int64_t n = smaller(inner - at[0], (int64_t)(end - done));
    row(dst + to, src + from, n);
    done += (uint64_t)n;
    at[0] += n;
    for (uint32_t d = 0; at[d] == p->dims[d].size && d + 1 < p->n_dims;) { at[d] = 0; ++at[++d]; }
  }
}

}  // namespace

extern const flhal_host_kernel copy_raw_table[5];
const flhal_host_kernel copy_raw_table[5] = {copy_raw<uint8_t>, copy_raw<uint16_t>, copy_raw<uint32_t>, copy_raw<uint64_t>,
                                             copy_raw<Raw16>};
LEVEL_END
