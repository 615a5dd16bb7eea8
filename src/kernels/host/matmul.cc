// src/kernels/host/matmul.cc: batched matrix products with any strides. Arguments: MatmulParams, out, a, b, c.
//
// A group is one tile (tile_m x tile_n) of one batch. Where the output is of the compute type the sums of the blocks of
// depth are added in place; else (f16, int8, ...) the tile is summed in a buffer and converted once.
#include "kernels/host/gemm.h"

LEVEL_BEGIN
namespace {

constexpr int64_t kBufferedTile = 96 * 128;   // elements; plan_matmul.cc keeps buffered tiles within it

template <class T> FN T scale_of(double f, int64_t i) { return is_float<T>::value ? (T)f : (T)i; }
template <> inline __attribute__((always_inline)) complex128 scale_of<complex128>(double f, int64_t) { return {f, 0}; }

template <class T> FN void matmul(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr int NR = Tile<T>::NR;
  const MatmulParams* p = (const MatmulParams*)argv[0];
  const bool in_place = p->kind[kMatOut] == kComputeKind[ComputeIndex<T>::value];
  const T alpha = scale_of<T>(p->alpha, p->alpha_int), beta = scale_of<T>(p->beta, p->beta_int);
  const bool plain = p->alpha == 1.0 && p->alpha_int == 1;
  const Load load_c = load_table[p->kind[kMatC]][ComputeIndex<T>::value];
  const Store store_out = store_table[p->kind[kMatOut]][ComputeIndex<T>::value];
  const uint64_t tiles = (uint64_t)(p->tiles_m * p->tiles_n);
  for (uint64_t unit = first; unit < first + count; ++unit) {
    if (unit >= tiles * (uint64_t)p->batches) return;
    uint64_t batch = unit / tiles, tile = unit % tiles;
    const int64_t m_at = (int64_t)(tile / (uint64_t)p->tiles_n) * p->tile_m, n_at = (int64_t)(tile % (uint64_t)p->tiles_n) * p->tile_n;
    const int64_t mb = min_of(p->tile_m, p->m - m_at), nb = min_of(p->tile_n, p->n - n_at);
    int64_t at[4] = {m_at * p->row[0] + n_at * p->col[0], m_at * p->row[1], n_at * p->col[2], m_at * p->row[3] + n_at * p->col[3]};
    for (uint32_t d = 0; d < p->n_batch_dims; ++d) {
      int64_t i = (int64_t)(batch % (uint64_t)p->batch[d].size);
      batch /= (uint64_t)p->batch[d].size;
      for (int k = 0; k < 4; ++k) at[k] += i * p->batch[d].stride[k];
    }
    char* out = (char*)const_cast<void*>(argv[1]) + at[0];
    const char* a = (const char*)argv[2] + at[1];
    const char* b = (const char*)argv[3] + at[2];
    const char* c = (const char*)argv[4] + at[3];

    auto pack_a = [&](T* dst, int64_t k0, int64_t kc) {
      pack_panels<T>(dst, a + k0 * p->col[1], p->kind[kMatA], mb, kc, p->row[1], p->col[1]);
    };
    auto pack_b = [&](T* dst, int64_t n0, int64_t nr, int64_t k0, int64_t kc) {
      pack_sliver<T>(dst, b + n0 * p->col[2] + k0 * p->row[2], p->kind[kMatB], nr, kc, p->row[2], p->col[2]);
    };
    // alpha and beta belong to the first block (beta) and to every block (alpha).
    auto finish = [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool is_first) {
      if (!plain) for (int64_t i = 0; i < mr * NR; ++i) acc[i] = mul(acc[i], alpha);
      if (is_first && p->has_c) {
        T line[NR];
        for (int64_t m = 0; m < mr; ++m) {
          load_c(line, c + (m0 + m) * p->row[3] + n0 * p->col[3], nr, p->col[3], 1, 0);
          for (int64_t j = 0; j < nr; ++j) acc[m * NR + j] = add(acc[m * NR + j], mul(beta, line[j]));
        }
      }
    };
    if (in_place) {
      const bool dense = p->col[0] == (int64_t)sizeof(T);
      gemm_tile<T>(mb, nb, p->k, pack_a, pack_b, [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool is_first) {
        finish(acc, m0, mr, n0, nr, is_first);
        for (int64_t m = 0; m < mr; ++m) {
          char* to = out + (m0 + m) * p->row[0] + n0 * p->col[0];
          T* line = acc + m * NR;
          if (dense && nr == NR) {
            T* o = (T*)to;
            if (is_first) for (int j = 0; j < NR; ++j) o[j] = line[j];
            else for (int j = 0; j < NR; ++j) o[j] = add(o[j], line[j]);
          } else {
            for (int64_t j = 0; j < nr; ++j) {
              T* o = (T*)(to + j * p->col[0]);
              *o = is_first ? line[j] : add(*o, line[j]);
            }
          }
        }
      });
    } else {
      alignas(64) T sum[kBufferedTile];
      gemm_tile<T>(mb, nb, p->k, pack_a, pack_b, [&](T* acc, int64_t m0, int64_t mr, int64_t n0, int64_t nr, bool is_first) {
        finish(acc, m0, mr, n0, nr, is_first);
        for (int64_t m = 0; m < mr; ++m)
          for (int64_t j = 0; j < nr; ++j) {
            T& s = sum[(m0 + m) * nb + n0 + j];
            s = is_first ? acc[m * NR + j] : add(s, acc[m * NR + j]);
          }
      });
      store_out(out, sum, nb, p->col[0], mb, p->row[0]);
    }
  }
}

}  // namespace

#define KERNEL(name, T) \
  void name(const void* const* argv, uint64_t first, uint64_t count); \
  void name(const void* const* argv, uint64_t first, uint64_t count) { matmul<T>(argv, first, count); }
KERNEL(matmul_f32, float)
KERNEL(matmul_f64, double)
KERNEL(matmul_i64, int64_t)
KERNEL(matmul_c128, complex128)

LEVEL_END
