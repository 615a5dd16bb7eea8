// reference_plugins/host/matmul_shape.cc: from strided operands to MatmulShape.
#include "matmul_shape.h"

#include <utility>

#include "plan.h"

namespace flhal::host {
namespace {

// Stride of t in the result's dimension d, counted from the right; 0 when t is broadcast there.
int64_t stride_in(const flhal_tensor_v1& t, uint32_t from_right) {
  if (from_right >= t.rank) return 0;
  const uint32_t d = t.rank - 1 - from_right;
  return t.sizes[d] == 1 ? 0 : t.strides[d];
}

// Merges batch i+1 into i when walking both is walking one longer dimension, for every operand.
void merge_batches(MatmulShape& s) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s.n_batch; ++i) {
    const MatmulShape::Batch& inner = s.batch[i];
    if (kept > 0) {
      MatmulShape::Batch& outer = s.batch[kept - 1];
      if (outer.a == inner.a * inner.size && outer.b == inner.b * inner.size && outer.c == inner.c * inner.size &&
          outer.out == inner.out * inner.size) {
        outer = {outer.size * inner.size, inner.a, inner.b, inner.c, inner.out};
        continue;
      }
    }
    s.batch[kept++] = inner;
  }
  s.n_batch = kept;
}

// Takes the innermost batch dimension into M when all of it meets the same b.
void fold_batch_into_m(MatmulShape& s) {
  while (s.n_batch > 0) {
    const MatmulShape::Batch& in = s.batch[s.n_batch - 1];
    const bool follows = s.m == 1 || (in.a == s.a_m * s.m && in.out == s.out_m * s.m && (!s.has_c || in.c == s.c_m * s.m));
    if (in.b != 0 || in.a == 0 || !follows) return;
    if (s.m == 1) s.a_m = in.a, s.out_m = in.out, s.c_m = in.c;
    s.m *= in.size;
    --s.n_batch;
  }
}

void transpose(MatmulShape& s) {
  std::swap(s.m, s.n);
  std::swap(s.a, s.b);
  for (uint32_t i = 0; i < s.n_batch; ++i) std::swap(s.batch[i].a, s.batch[i].b);
  const int64_t a_m = s.a_m, a_k = s.a_k;
  s.a_m = s.b_n, s.a_k = s.b_k;
  s.b_n = a_m, s.b_k = a_k;
  std::swap(s.c_m, s.c_n);
  std::swap(s.out_m, s.out_n);
}

// A dimension of size 1 may carry any stride; gives it the one that makes the matrix dense. True when one of the two
// strides is 1 and the lines of the other do not overlap.
bool settle(int64_t rows, int64_t columns, int64_t& row_stride, int64_t& column_stride) {
  if (columns == 1) column_stride = 1, row_stride = rows == 1 ? 1 : row_stride;
  if (rows == 1) row_stride = column_stride == 1 ? columns : 1;
  if (column_stride == 1 && row_stride >= columns) return true;
  return row_stride == 1 && column_stride >= rows;
}

}  // namespace

bool MatmulShape::c_is_row() const {
  if (!has_c || (c_m != 0 && m > 1) || (c_n != 1 && n > 1)) return false;
  for (uint32_t i = 0; i < n_batch; ++i)
    if (batch[i].c != 0) return false;
  return true;
}

const char* read_matmul(const flhal_op_call_v1& call, MatmulShape& s) {
  const flhal_tensor_v1 &out = tensor_of(call, 0), &a = tensor_of(call, 1), &b = tensor_of(call, 2), &c = tensor_of(call, 3);
  if (a.rank < 2 || b.rank < 2 || out.rank < 2) return "matmul with an operand of rank below 2";
  if (element_count(out) == 0 || a.sizes[a.rank - 1] == 0) return "an empty matmul";
  s.has_c = call.n_inputs > 2 && given(c);
  s.m = out.sizes[out.rank - 2], s.n = out.sizes[out.rank - 1], s.k = a.sizes[a.rank - 1];
  s.a_m = stride_in(a, 1), s.a_k = stride_in(a, 0);
  s.b_k = stride_in(b, 1), s.b_n = stride_in(b, 0);
  s.out_m = stride_in(out, 1), s.out_n = stride_in(out, 0);
  s.c_m = s.has_c ? stride_in(c, 1) : 0, s.c_n = s.has_c ? stride_in(c, 0) : 0;
  for (uint32_t d = 0; d + 2 < out.rank; ++d) {
    if (out.sizes[d] == 1) continue;
    const uint32_t right = out.rank - 1 - d;
    s.batch[s.n_batch++] = {out.sizes[d], stride_in(a, right), stride_in(b, right), s.has_c ? stride_in(c, right) : 0,
                            stride_in(out, right)};
  }
  merge_batches(s);
  fold_batch_into_m(s);
  if (s.n_batch > MatmulShape::kMaxBatch) return "matmul with more than 10 batch dimensions that do not merge";

  if (!settle(s.m, s.n, s.out_m, s.out_n)) return "the result of a matmul has neither dense rows nor dense columns";
  if (s.out_n != 1) transpose(s);
  if (!settle(s.m, s.k, s.a_m, s.a_k) || !settle(s.k, s.n, s.b_k, s.b_n))
    return "a matrix of a matmul has neither dense rows nor dense columns, or overlaps itself";
  return nullptr;
}

}  // namespace flhal::host
