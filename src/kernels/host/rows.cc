// src/kernels/host/rows.cc: rows that are not one dense run of the compute type.
#include "kernels/host/rows.h"

LEVEL_BEGIN
namespace {

// Visits elements [first, first + n) of a row as rectangles (dense index, byte offset, n0, s0, n1, s1).
template <class Visit> inline void rectangles(const RowsParams* p, uint32_t k, int64_t first, int64_t n, Visit visit) {
  const RowDim* in = p->dims + p->n_outer;
  if (p->n_inner == 1) { visit(0, first * in[0].stride[k], n, in[0].stride[k], 1, 0); return; }
  for (int64_t done = 0; done < n;) {
    int64_t rest = first + done, at0 = rest % in[0].size, offset = at0 * in[0].stride[k];
    rest /= in[0].size;
    int64_t at1 = rest % in[1].size;
    offset += at1 * in[1].stride[k];
    rest /= in[1].size;
    for (uint32_t d = 2; d < p->n_inner; ++d) { offset += rest % in[d].size * in[d].stride[k]; rest /= in[d].size; }
    if (at0 == 0 && n - done >= in[0].size) {
      int64_t rows = min_of(in[1].size - at1, (n - done) / in[0].size);
      visit(done, offset, in[0].size, in[0].stride[k], rows, in[1].stride[k]);
      done += rows * in[0].size;
    } else {
      int64_t run = min_of(in[0].size - at0, n - done);
      visit(done, offset, run, in[0].stride[k], 1, 0);
      done += run;
    }
  }
}

}  // namespace

void gather_row(const RowsParams* p, uint32_t k, Load load, const char* row, int64_t first, int64_t n, void* buffer, int64_t bytes) {
  rectangles(p, k, first, n, [=](int64_t i, int64_t offset, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
    load((char*)buffer + i * bytes, row + offset, n0, s0, n1, s1);
  });
}
void scatter_row(const RowsParams* p, uint32_t k, Store store, char* row, int64_t first, int64_t n, const void* buffer, int64_t bytes) {
  rectangles(p, k, first, n, [=](int64_t i, int64_t offset, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
    store(row + offset, (const char*)buffer + i * bytes, n0, s0, n1, s1);
  });
}

LEVEL_END
