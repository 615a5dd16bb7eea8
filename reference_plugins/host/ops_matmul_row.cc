// reference_plugins/host/ops_matmul_row.cc: one row times a matrix whose columns are dense: a Linear on one token.
//
// oneDNN packs the matrix for its blocks, which pays from some rows on; for one row reading it once is all there is to do.
// 1x384x384, one thread: 19 us by oneDNN, 7 us here, 14 us by torch (bench/host_ops_bench.py).
#include "matmul_shape.h"
#include "ops_makers.h"
#include "threads.h"
#include "vec.h"

namespace flhal::host {
namespace {

// out[j] = a . b[:, j] for four columns at a time: four independent sums hide the latency of the multiply-add.
FLHAL_LEVELS void dots(const float* a, const float* b, int64_t column, int64_t k, int64_t columns, float* out) {
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4, b += 4 * column) {
    Vec s0{}, s1{}, s2{}, s3{};
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
      const Vec x = load(a + i);
      s0 += x * load(b + i);
      s1 += x * load(b + column + i);
      s2 += x * load(b + 2 * column + i);
      s3 += x * load(b + 3 * column + i);
    }
    float r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    for (; i < k; ++i)
      r0 += a[i] * b[i], r1 += a[i] * b[column + i], r2 += a[i] * b[2 * column + i], r3 += a[i] * b[3 * column + i];
    out[j] = sum_lanes(s0) + r0, out[j + 1] = sum_lanes(s1) + r1;
    out[j + 2] = sum_lanes(s2) + r2, out[j + 3] = sum_lanes(s3) + r3;
  }
  for (; j < columns; ++j, b += column) {
    Vec s{};
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) s += load(a + i) * load(b + i);
    float r = 0;
    for (; i < k; ++i) r += a[i] * b[i];
    out[j] = sum_lanes(s) + r;
  }
}

class RowPlan final : public flhal_p_plan {
 public:
  explicit RowPlan(const MatmulShape& shape) : s_(shape) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const float alpha = static_cast<float>(number_attr(call, FLHAL_ATTR_MATMUL_ALPHA, 1.0));
    const float beta = s_.has_c ? static_cast<float>(number_attr(call, FLHAL_ATTR_MATMUL_BETA, 1.0)) : 0.0f;
    auto* a = static_cast<const float*>(pointer_of(tensor_of(call, s_.a)));
    auto* b = static_cast<const float*>(pointer_of(tensor_of(call, s_.b)));
    auto* c = beta != 0 ? static_cast<const float*>(pointer_of(tensor_of(call, 3))) : nullptr;
    auto* out = static_cast<float*>(pointer_of(tensor_of(call, 0)));
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(s_.n / 4, s_.n * s_.k / 65536));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      const int64_t from = s_.n * first / pieces, to = s_.n * (first + count) / pieces;
      dots(a, b + from * s_.b_n, s_.b_n, s_.k, to - from, out + from);
      if (alpha != 1) for (int64_t j = from; j < to; ++j) out[j] *= alpha;
      if (c) for (int64_t j = from; j < to; ++j) out[j] += beta * c[j * s_.c_n];
    });
    return FLHAL_OK;
  }

 private:
  const MatmulShape s_;
};

}  // namespace

bool is_row_product(const MatmulShape& s) { return s.n_batch == 0 && s.m == 1 && s.a_k == 1 && s.b_k == 1; }

std::unique_ptr<flhal_p_plan> make_row_product(const MatmulShape& s) { return std::make_unique<RowPlan>(s); }

}  // namespace flhal::host
