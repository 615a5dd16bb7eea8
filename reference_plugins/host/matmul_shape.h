// reference_plugins/host/matmul_shape.h: a product as oneDNN wants to see it: few batch dimensions, two matrices with one
// dense dimension each, and a result whose rows are dense.
//
// Nothing is copied: broadcasting becomes a stride of 0, neighbouring batch dimensions merge, a batch folds into M when b
// is the same for all of it (a Linear over [batch, tokens, features]), and a column-major result becomes the transposed
// product.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>

namespace flhal::host {

struct MatmulShape {
  static constexpr uint32_t kMaxBatch = 10;   // oneDNN takes 12 dimensions

  struct Batch { int64_t size, a, b, c, out; };   // strides in elements; 0 = broadcast
  Batch batch[16];
  uint32_t n_batch = 0;
  int64_t m, n, k;
  int64_t a_m, a_k, b_k, b_n, c_m, c_n, out_m, out_n;   // strides in elements
  int a = 1, b = 2;            // operand numbers; exchanged when the product is transposed
  bool has_c = false;

  int64_t batch_count() const {
    int64_t count = 1;
    for (uint32_t i = 0; i < n_batch; ++i) count *= batch[i].size;
    return count;
  }
  // c is one value per column and the same for all rows and batches: oneDNN's bias.
  bool c_is_row() const;
};

// Static text says why when oneDNN cannot take it.
const char* read_matmul(const flhal_op_call_v1& call, MatmulShape& out);

}  // namespace flhal::host
