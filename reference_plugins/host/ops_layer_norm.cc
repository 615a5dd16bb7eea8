// reference_plugins/host/ops_layer_norm.cc: layer_norm and its gradients, row by row.
//
// The variance is the mean of squared differences from the mean (a second pass over a row that lies in the first cache):
// the one-pass formula loses everything when the mean is large.
#include <cmath>
#include <mutex>

#include "ops_makers.h"
#include "rows.h"
#include "threads.h"
#include "vec.h"

namespace flhal::host {
namespace {

struct Moments { float mean, rstd; };

FLHAL_LEVELS Moments moments(const float* x, int64_t n, float eps) {
  Vec s0{}, s1{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) s0 += load(x + i), s1 += load(x + i + kLanes);
  for (; i + kLanes <= n; i += kLanes) s0 += load(x + i);
  if (i < n) s1 += load_part(x + i, n - i, 0);
  const float mean = sum_lanes(s0 + s1) / static_cast<float>(n);
  const Vec m = splat(mean);
  s0 = s1 = Vec{};
  for (i = 0; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec a = load(x + i) - m, b = load(x + i + kLanes) - m;
    s0 += a * a, s1 += b * b;
  }
  for (; i + kLanes <= n; i += kLanes) {
    const Vec a = load(x + i) - m;
    s0 += a * a;
  }
  if (i < n) {
    const Vec a = load_part(x + i, n - i, mean) - m;
    s0 += a * a;
  }
  return {mean, 1.0f / std::sqrt(sum_lanes(s0 + s1) / static_cast<float>(n) + eps)};
}

// weight and bias may be null.
FLHAL_LEVELS void normalise(const float* x, const float* weight, const float* bias, float* out, int64_t n, Moments m) {
  const Vec mean = splat(m.mean), rstd = splat(m.rstd);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vec v = (load(x + i) - mean) * rstd;
    if (weight) v = v * load(weight + i);
    if (bias) v = v + load(bias + i);
    store(out + i, v);
  }
  for (; i < n; ++i) {
    float v = (x[i] - m.mean) * m.rstd;
    if (weight) v *= weight[i];
    if (bias) v += bias[i];
    out[i] = v;
  }
}

// gx of one row, and its share of gw and gb. Each result may be null.
FLHAL_LEVELS void backward_row(const float* grad, const float* x, const float* weight, int64_t n, Moments m, float* gx,
                               float* gw, float* gb) {
  if (gx) {
    float mean_g = 0, mean_gx = 0;
    Vec a{}, b{};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Vec g = weight ? load(grad + i) * load(weight + i) : load(grad + i);
      a += g;
      b += g * ((load(x + i) - splat(m.mean)) * splat(m.rstd));
    }
    for (; i < n; ++i) {
      const float g = weight ? grad[i] * weight[i] : grad[i];
      mean_g += g;
      mean_gx += g * ((x[i] - m.mean) * m.rstd);
    }
    mean_g = (mean_g + sum_lanes(a)) / static_cast<float>(n);
    mean_gx = (mean_gx + sum_lanes(b)) / static_cast<float>(n);
    for (i = 0; i < n; ++i) {
      const float g = weight ? grad[i] * weight[i] : grad[i];
      gx[i] = m.rstd * (g - mean_g - (x[i] - m.mean) * m.rstd * mean_gx);
    }
  }
  if (gw) for (int64_t i = 0; i < n; ++i) gw[i] += grad[i] * ((x[i] - m.mean) * m.rstd);
  if (gb) for (int64_t i = 0; i < n; ++i) gb[i] += grad[i];
}

uint32_t last_dims(const flhal_tensor_v1& t, int64_t n) { return ((1u << n) - 1) << (t.rank - n); }
uint32_t all_dims(const flhal_tensor_v1& t) { return (1u << t.rank) - 1; }

// An optional parameter of normalised shape as dense floats; null when not given.
const float* parameter(const flhal_tensor_v1& t, std::vector<float>& buffer) {
  const Rows rows(t, given(t) ? all_dims(t) : 0);
  if (!rows.given()) return nullptr;
  if (!rows.direct()) buffer.resize(rows.length());
  return rows.read(0, buffer.data());
}

// Rows per piece of work: a thread is worth waking for some 10 us.
uint64_t pieces_for(int64_t rows, int64_t n) { return std::max<int64_t>(1, std::min<int64_t>(rows, rows * n / 16384)); }

class LayerNormPlan final : public flhal_p_plan {
 public:
  LayerNormPlan(int64_t n_dims, float eps) : n_dims_(n_dims), eps_(eps) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    const flhal_tensor_v1& t = tensor_of(call, 0);
    const uint32_t inner = last_dims(t, n_dims_);
    const Rows out(t, inner), mean(tensor_of(call, 1), inner), rstd(tensor_of(call, 2), inner), x(tensor_of(call, 3), inner);
    std::vector<float> weight_buffer, bias_buffer;
    const float* weight = parameter(tensor_of(call, 4), weight_buffer);
    const float* bias = parameter(tensor_of(call, 5), bias_buffer);
    const int64_t rows = x.count(), n = x.length();
    if (rows == 0) return FLHAL_OK;
    const uint64_t pieces = pieces_for(rows, n);
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      std::vector<float> buffer(out.direct() && x.direct() ? 0 : 2 * n);
      for (int64_t r = rows * first / pieces, end = rows * (first + count) / pieces; r < end; ++r) {
        const float* xr = x.read(r, buffer.data());
        float* to = out.begin_write(r, buffer.data() + n * !buffer.empty());
        const Moments m = moments(xr, n, eps_);
        normalise(xr, weight, bias, to, n, m);
        out.write(r, to);
        put(mean, r, m.mean);
        put(rstd, r, m.rstd);
      }
    });
    return FLHAL_OK;
  }

 private:
  static void put(const Rows& rows, int64_t r, float value) {
    if (!rows.given()) return;
    float buffer;
    float* to = rows.begin_write(r, &buffer);
    *to = value;
    rows.write(r, to);
  }
  const int64_t n_dims_;
  const float eps_;
};

class LayerNormBackwardPlan final : public flhal_p_plan {
 public:
  explicit LayerNormBackwardPlan(int64_t n_dims) : n_dims_(n_dims) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    // (gx?, gw?, gb?; grad, x, mean, rstd, weight?)
    const flhal_tensor_v1& t = tensor_of(call, 4);
    const uint32_t inner = last_dims(t, n_dims_);
    const flhal_tensor_v1 &gw_t = tensor_of(call, 1), &gb_t = tensor_of(call, 2);
    const Rows gx(tensor_of(call, 0), inner), grad(tensor_of(call, 3), inner), x(t, inner);
    const Rows mean(tensor_of(call, 5), inner), rstd(tensor_of(call, 6), inner);
    std::vector<float> weight_buffer;
    const float* weight = parameter(tensor_of(call, 7), weight_buffer);
    const int64_t rows = x.count(), n = x.length();
    const bool wants_gw = given(gw_t), wants_gb = given(gb_t);
    // Sums over many rows: floats for up to 64 rows, doubles above, so that the last row counts as much as the first.
    std::vector<double> gw_sum(wants_gw ? n : 0), gb_sum(wants_gb ? n : 0);
    std::mutex mutex;
    const uint64_t pieces = pieces_for(rows, n);
    for_ranges(rows ? pieces : 0, [&](uint64_t first, uint64_t count) {
      std::vector<float> buffer(3 * n), gw(wants_gw ? n : 0), gb(wants_gb ? n : 0);
      std::vector<double> gw_own(gw.size()), gb_own(gb.size());
      int64_t pending = 0;
      auto flush = [&] {
        for (size_t i = 0; i < gw.size(); ++i) gw_own[i] += gw[i], gw[i] = 0;
        for (size_t i = 0; i < gb.size(); ++i) gb_own[i] += gb[i], gb[i] = 0;
        pending = 0;
      };
      for (int64_t r = rows * first / pieces, end = rows * (first + count) / pieces; r < end; ++r) {
        float mean_value, rstd_value;
        const Moments m{*mean.read(r, &mean_value), *rstd.read(r, &rstd_value)};
        const float* g = grad.read(r, buffer.data());
        const float* xr = x.read(r, buffer.data() + n);
        float* to = gx.given() ? gx.begin_write(r, buffer.data() + 2 * n) : nullptr;
        backward_row(g, xr, weight, n, m, to, wants_gw ? gw.data() : nullptr, wants_gb ? gb.data() : nullptr);
        if (to) gx.write(r, to);
        if (++pending == 64) flush();
      }
      flush();
      std::lock_guard lock(mutex);
      for (size_t i = 0; i < gw.size(); ++i) gw_sum[i] += gw_own[i];
      for (size_t i = 0; i < gb.size(); ++i) gb_sum[i] += gb_own[i];
    });
    write_sum(gw_t, gw_sum);
    write_sum(gb_t, gb_sum);
    return FLHAL_OK;
  }

 private:
  static void write_sum(const flhal_tensor_v1& t, const std::vector<double>& sum) {
    if (!given(t)) return;
    const Rows rows(t, all_dims(t));
    std::vector<float> buffer(sum.size());
    float* to = rows.begin_write(0, buffer.data());
    for (size_t i = 0; i < sum.size(); ++i) to[i] = static_cast<float>(sum[i]);
    rows.write(0, to);
  }
  const int64_t n_dims_;
};

const char* check(const flhal_op_call_v1& call) {
  for (uint32_t i = 0; i < call.n_outputs + call.n_inputs; ++i)
    if (given(tensor_of(call, i)) && !is_row_dtype(tensor_of(call, i).dtype))
      return "native layer_norm takes float32, float16 and bfloat16";
  return nullptr;
}

}  // namespace

const char* make_layer_norm(const flhal_op_call_v1& call, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& out) {
  if (const char* reason = check(call)) return reason;
  const int64_t n_dims = integer_attr(call, FLHAL_ATTR_LAYER_NORM_N_DIMS, 1);
  if (n_dims < 1 || n_dims > tensor_of(call, 0).rank) return "layer_norm over more dimensions than there are";
  out = std::make_unique<LayerNormPlan>(n_dims, static_cast<float>(number_attr(call, FLHAL_ATTR_LAYER_NORM_EPS, 1e-5)));
  return nullptr;
}

const char* make_layer_norm_backward(const flhal_op_call_v1& call, flhal_plan_info_v1&, std::unique_ptr<flhal_p_plan>& out) {
  if (const char* reason = check(call)) return reason;
  const int64_t n_dims = integer_attr(call, FLHAL_ATTR_LAYER_NORM_BACKWARD_N_DIMS, 1);
  if (n_dims < 1 || n_dims > tensor_of(call, 4).rank) return "layer_norm over more dimensions than there are";
  out = std::make_unique<LayerNormBackwardPlan>(n_dims);
  return nullptr;
}

}  // namespace flhal::host
