// src/kernels/host/walk.h: positions in the dimensions of a PointwiseParams, and runs of elements as rectangles.
#pragma once

#include "kernels/host/level.h"

LEVEL_BEGIN

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

struct Walk {
  const PointwiseParams* p;
  int64_t at[kMaxRank];

  void seek(uint64_t element) {
    for (uint32_t d = 0; d < p->n_dims; ++d) {
      if (element == 0) { at[d] = 0; continue; }
      at[d] = (int64_t)(element % (uint64_t)p->dims[d].size);
      element /= (uint64_t)p->dims[d].size;
    }
  }
  int64_t offset(uint32_t operand) const {
    int64_t o = 0;
    for (uint32_t d = 0; d < p->n_dims; ++d) o += at[d] * p->dims[d].stride[operand];
    return o;
  }
  void carry(uint32_t d) {            // at[d] may have reached its size
    while (at[d] == p->dims[d].size && d + 1 < p->n_dims) { at[d] = 0; ++at[++d]; }
  }
  void advance(int64_t n) { at[0] += n; carry(0); }   // not past the end of the row
};

// Visits n elements from `walk` on as rectangles (dense index, byte offset, n0, s0, n1, s1) and leaves `walk` behind them.
template <class Visit> static inline __attribute__((always_inline)) void rectangles(Walk& walk, uint32_t k, int64_t n, Visit visit) {
  const PointwiseParams* p = walk.p;
  int64_t inner = p->dims[0].size, s0 = p->dims[0].stride[k];
  for (int64_t done = 0; done < n;) {
    if (walk.at[0] == 0 && p->n_dims > 1 && n - done >= inner) {
      int64_t rows = smaller(p->dims[1].size - walk.at[1], (n - done) / inner);
      visit(done, walk.offset(k), inner, s0, rows, p->dims[1].stride[k]);
      done += rows * inner;
      walk.at[1] += rows;
      walk.carry(1);
    } else {
      int64_t run = smaller(inner - walk.at[0], n - done);
      visit(done, walk.offset(k), run, s0, 1, 0);
      done += run;
      walk.advance(run);
    }
  }
}

LEVEL_END
