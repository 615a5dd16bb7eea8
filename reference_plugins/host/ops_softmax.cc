// reference_plugins/host/ops_softmax.cc: softmax, log_softmax and their gradients, row by row.
//
// Ours rather than oneDNN's: a plan serves every size (a oneDNN primitive is made for one), and the loops are as fast
// (docs/why/host_plugin.md). Sums have sixteen partial sums, so they are as accurate as torch's.
#include <cmath>

#include "ops_makers.h"
#include "rows.h"
#include "threads.h"
#include "vec.h"

namespace flhal::host {
namespace {

enum class Kind { kSoftmax, kLogSoftmax, kSoftmaxBackward, kLogSoftmaxBackward };

constexpr float kMinusInfinity = -__builtin_inff();

FLHAL_INLINE float row_max(const float* x, int64_t n) {
  Vec m = splat(kMinusInfinity);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) m = max(load(x + i), m);
  if (i < n) m = max(load_part(x + i, n - i, kMinusInfinity), m);
  return max_lanes(m);
}

FLHAL_LEVELS void softmax_row(const float* x, float* out, int64_t n) {
  const Vec m = splat(row_max(x, n));
  Vec sum{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec e = exp(load(x + i) - m);
    store(out + i, e);
    sum += e;
  }
  if (i < n) {
    const Vec e = exp(load_part(x + i, n - i, kMinusInfinity) - m);
    store_part(out + i, n - i, e);
    sum += e;
  }
  const float scale = 1.0f / sum_lanes(sum);
  for (i = 0; i + kLanes <= n; i += kLanes) store(out + i, load(out + i) * splat(scale));
  for (; i < n; ++i) out[i] *= scale;
}

FLHAL_LEVELS void log_softmax_row(const float* x, float* out, int64_t n) {
  const float m = row_max(x, n);
  Vec sum{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum += exp(load(x + i) - splat(m));
  if (i < n) sum += exp(load_part(x + i, n - i, kMinusInfinity) - splat(m));
  const float log_sum = std::log(sum_lanes(sum));
  for (i = 0; i < n; ++i) out[i] = (x[i] - m) - log_sum;   // this order keeps small differences
}

FLHAL_LEVELS void softmax_backward_row(const float* grad, const float* y, float* out, int64_t n) {
  Vec dot{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) dot += load(grad + i) * load(y + i);
  if (i < n) dot += load_part(grad + i, n - i, 0) * load_part(y + i, n - i, 0);
  const float s = sum_lanes(dot);
  for (i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - s);
}

FLHAL_LEVELS void log_softmax_backward_row(const float* grad, const float* y, float* out, int64_t n) {
  Vec sum{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum += load(grad + i);
  if (i < n) sum += load_part(grad + i, n - i, 0);
  const Vec s = splat(sum_lanes(sum));
  for (i = 0; i + kLanes <= n; i += kLanes) store(out + i, load(grad + i) - exp(load(y + i)) * s);
  if (i < n) store_part(out + i, n - i, load_part(grad + i, n - i, 0) - exp(load_part(y + i, n - i, 0)) * s);
}

class SoftmaxPlan final : public flhal_p_plan {
 public:
  SoftmaxPlan(Kind kind, int64_t dim) : kind_(kind), dim_(dim) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const flhal_tensor_v1& t = tensor_of(call, 0);
    const uint32_t inner = t.rank ? 1u << (dim_ < 0 ? dim_ + t.rank : dim_) : 0;
    const bool backward = kind_ == Kind::kSoftmaxBackward || kind_ == Kind::kLogSoftmaxBackward;
    const Rows out(t, inner), x(tensor_of(call, 1), inner), y = backward ? Rows(tensor_of(call, 2), inner) : Rows();
    const int64_t rows = out.count(), n = out.length();
    if (rows == 0 || n == 0) return FLHAL_OK;
    // About 0.5 ns per element; a thread is worth waking for some 10 us.
    const uint64_t pieces = std::max<int64_t>(1, std::min<int64_t>(rows, rows * n / 16384));
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      std::vector<float> buffer(out.direct() && x.direct() && (!backward || y.direct()) ? 0 : 3 * n);
      float *b0 = buffer.data(), *b1 = b0 + n, *b2 = b1 + n;
      if (buffer.empty()) b0 = b1 = b2 = nullptr;
      for (int64_t r = rows * first / pieces, end = rows * (first + count) / pieces; r < end; ++r) {
        const float* xr = x.read(r, b1);
        float* to = out.begin_write(r, b0);
        switch (kind_) {
          case Kind::kSoftmax: softmax_row(xr, to, n); break;
          case Kind::kLogSoftmax: log_softmax_row(xr, to, n); break;
          case Kind::kSoftmaxBackward: softmax_backward_row(xr, y.read(r, b2), to, n); break;
          case Kind::kLogSoftmaxBackward: log_softmax_backward_row(xr, y.read(r, b2), to, n); break;
        }
        out.write(r, to);
      }
    });
    return FLHAL_OK;
  }

 private:
  const Kind kind_;
  const int64_t dim_;
};

const char* make(Kind kind, const flhal_op_call_v1& call, std::unique_ptr<flhal_p_plan>& out) {
  for (uint32_t i = 0; i < 1 + call.n_inputs; ++i)
    if (!is_row_dtype(tensor_of(call, i).dtype)) return "native softmax takes float32, float16 and bfloat16";
  // All of this family have the attribute `dim` as number 1.
  out = std::make_unique<SoftmaxPlan>(kind, integer_attr(call, call.op << 8 | 1, -1));
  return nullptr;
}

}  // namespace

const char* make_softmax(const flhal_op_call_v1& c, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kSoftmax, c, o);
}
const char* make_log_softmax(const flhal_op_call_v1& c, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kLogSoftmax, c, o);
}
const char* make_softmax_backward(const flhal_op_call_v1& c, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kSoftmaxBackward, c, o);
}
const char* make_log_softmax_backward(const flhal_op_call_v1& c, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& o) {
  return make(Kind::kLogSoftmaxBackward, c, o);
}

}  // namespace flhal::host
