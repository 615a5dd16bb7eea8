// reference_plugins/host/ops_batch_norm.cc: batch_norm and its gradients, float32.
//
// Two ways to walk: `planes` when the elements of one channel and sample are dense (NCHW), `lines` when the channels of one
// position are dense (channels_last, and matrices). Everything per channel becomes a small array first; the big loops
// then only read, multiply, add and write. Statistics take two passes, in doubles across planes.
#include <algorithm>
#include <cmath>

#include "ops_makers.h"
#include "rows.h"
#include "threads.h"
#include "vec.h"

namespace flhal::host {
namespace {

// ---- loops over dense floats ----------------------------------------------------------------------------------
// sum of a, and sum of a * (b - shift); b may be a.
FLHAL_LEVELS void sums(const float* a, const float* b, float shift, int64_t n, double* sum_a, double* sum_ab) {
  // Pieces of 4096: their float sums are exact enough, and doubles add them up.
  for (int64_t at = 0; at < n; at += 4096) {
    const int64_t end = std::min(n, at + 4096);
    Vec s{}, t{};
    int64_t i = at;
    for (; i + kLanes <= end; i += kLanes) {
      const Vec v = load(a + i);
      s += v;
      t += v * (load(b + i) - splat(shift));
    }
    float rest_s = 0, rest_t = 0;
    for (; i < end; ++i) rest_s += a[i], rest_t += a[i] * (b[i] - shift);
    *sum_a += sum_lanes(s) + rest_s;
    *sum_ab += sum_lanes(t) + rest_t;
  }
}
FLHAL_LEVELS double squares(const float* x, float mean, int64_t n) {
  double sum = 0;
  for (int64_t at = 0; at < n; at += 4096) {
    const int64_t end = std::min(n, at + 4096);
    Vec s{};
    int64_t i = at;
    for (; i + kLanes <= end; i += kLanes) {
      const Vec d = load(x + i) - splat(mean);
      s += d * d;
    }
    float rest = 0;
    for (; i < end; ++i) rest += (x[i] - mean) * (x[i] - mean);
    sum += sum_lanes(s) + rest;
  }
  return sum;
}
// The mean is subtracted first: folded into the shift it would cost the digits that it has more than x - mean.
FLHAL_LEVELS void apply_plane(const float* x, float* out, int64_t n, float mean, float scale, float shift) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale + shift;
}
FLHAL_LEVELS void apply_line(const float* x, float* out, int64_t n, const float* mean, const float* scale, const float* shift) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean[i]) * scale[i] + shift[i];
}
// gx = g * p + (x - mean) * q + r
FLHAL_LEVELS void gradient_plane(const float* g, const float* x, float* gx, int64_t n, float mean, float p, float q, float r) {
  for (int64_t i = 0; i < n; ++i) gx[i] = g[i] * p + (x[i] - mean) * q + r;
}
FLHAL_LEVELS void gradient_line(const float* g, const float* x, float* gx, int64_t n, const float* mean, const float* p,
                                const float* q, const float* r) {
  for (int64_t i = 0; i < n; ++i) gx[i] = g[i] * p[i] + (x[i] - mean[i]) * q[i] + r[i];
}
FLHAL_LEVELS void add_line(const float* a, const float* b, const float* shift, int64_t n, float* sum_a, float* sum_ab) {
  for (int64_t i = 0; i < n; ++i) sum_a[i] += a[i], sum_ab[i] += a[i] * (b[i] - shift[i]);
}
FLHAL_LEVELS void add_squares_line(const float* x, const float* mean, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
}

// ---- one activation tensor ------------------------------------------------------------------------------------
struct Activation {
  float* base = nullptr;
  int64_t n = 1, c = 1, s = 1, n_stride = 0, c_stride = 0, s_stride = 1;
  bool planes = false, lines = false;   // how it may be walked; both for tiny ones

  Activation() = default;
  explicit Activation(const flhal_tensor_v1& t) {
    if (!given(t)) return;
    base = static_cast<float*>(pointer_of(t));
    n = t.sizes[0], n_stride = t.strides[0], c = t.sizes[1], c_stride = t.strides[1];
    bool dense = true;   // the dimensions behind the channel are one
    for (uint32_t d = t.rank; d-- > 2;) {
      if (t.sizes[d] == 1) continue;
      if (s == 1) s_stride = t.strides[d];
      else dense &= t.strides[d] == s_stride * s;
      s *= t.sizes[d];
    }
    planes = dense && (s_stride == 1 || s == 1);
    lines = dense && (c_stride == 1 || c == 1);
  }
  float* plane(int64_t i, int64_t channel) const { return base + i * n_stride + channel * c_stride; }
  float* line(int64_t r) const { return base + r / s * n_stride + r % s * s_stride; }
  int64_t per_channel() const { return n * s; }
};

uint64_t pieces_for(int64_t most, int64_t elements) {
  return std::max<int64_t>(1, std::min<int64_t>(most, elements / 32768));
}

// Sums over each channel of `a` and of a * (b - shift[c]).
void channel_sums(const Activation& a, const Activation& b, const float* shift, bool by_lines, double* sum_a, double* sum_ab) {
  const int64_t c = a.c;
  if (!by_lines) {
    const uint64_t pieces = pieces_for(c, a.per_channel() * c);
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t i = c * first / pieces; i < static_cast<int64_t>(c * (first + count) / pieces); ++i)
        for (int64_t n = 0; n < a.n; ++n) sums(a.plane(n, i), b.plane(n, i), shift[i], a.s, &sum_a[i], &sum_ab[i]);
    });
    return;
  }
  const uint64_t pieces = pieces_for((c + 15) / 16, a.per_channel() * c);   // whole vectors of channels per thread
  for_ranges(pieces, [&](uint64_t first, uint64_t count) {
    const int64_t from = (c + 15) / 16 * first / pieces * 16;
    const int64_t to = std::min<int64_t>(c, (c + 15) / 16 * (first + count) / pieces * 16), width = to - from;
    if (width <= 0) return;
    std::vector<float> s(2 * width);
    for (int64_t r = 0, rows = a.per_channel(); r < rows; ++r) {
      add_line(a.line(r) + from, b.line(r) + from, shift + from, width, s.data(), s.data() + width);
      if (r % 256 != 255 && r + 1 != rows) continue;
      for (int64_t i = 0; i < width; ++i) sum_a[from + i] += s[i], sum_ab[from + i] += s[width + i];
      std::fill(s.begin(), s.end(), 0.0f);
    }
  });
}

void channel_squares(const Activation& x, const float* mean, bool by_lines, double* sum) {
  const int64_t c = x.c;
  if (!by_lines) {
    const uint64_t pieces = pieces_for(c, x.per_channel() * c);
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t i = c * first / pieces; i < static_cast<int64_t>(c * (first + count) / pieces); ++i)
        for (int64_t n = 0; n < x.n; ++n) sum[i] += squares(x.plane(n, i), mean[i], x.s);
    });
    return;
  }
  std::vector<float> s(c);
  for (int64_t r = 0, rows = x.per_channel(); r < rows; ++r) {
    add_squares_line(x.line(r), mean, c, s.data());
    if (r % 256 != 255 && r + 1 != rows) continue;
    for (int64_t i = 0; i < c; ++i) sum[i] += s[i], s[i] = 0;
  }
}

// One value per channel, of any stride and float type.
std::vector<float> channel_values(const flhal_tensor_v1& t, int64_t c, float otherwise) {
  std::vector<float> v(c, otherwise);
  if (!given(t)) return v;
  const Rows rows(t, 1);
  const float* p = rows.read(0, v.data());
  if (p != v.data()) std::copy(p, p + c, v.begin());
  return v;
}
void put_channel_values(const flhal_tensor_v1& t, const std::vector<float>& v) {
  if (!given(t)) return;
  const Rows rows(t, 1);
  std::vector<float> buffer(v.size());
  float* to = rows.begin_write(0, buffer.data());
  std::copy(v.begin(), v.end(), to);
  rows.write(0, to);
}

class BatchNormPlan final : public flhal_p_plan {
 public:
  BatchNormPlan(bool training, double momentum, double eps) : training_(training), momentum_(momentum), eps_(eps) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    // (out, save_mean?, save_rstd?; x, weight?, bias?, running_mean?, running_var?)
    const Activation out(tensor_of(call, 0)), x(tensor_of(call, 3));
    if (!((x.planes && out.planes) || (x.lines && out.lines))) return FLHAL_DECLINED;
    const bool by_lines = !(x.planes && out.planes) || (x.s == 1 && x.lines && out.lines);
    const int64_t c = x.c, m = x.per_channel();
    const flhal_tensor_v1 &running_mean = tensor_of(call, 6), &running_var = tensor_of(call, 7);
    if (c == 0 || m == 0) return FLHAL_OK;
    std::vector<float> mean(c), rstd(c), weight = channel_values(tensor_of(call, 4), c, 1), bias = channel_values(tensor_of(call, 5), c, 0);
    if (training_) {
      std::vector<double> sum(c), other(c), square(c);
      channel_sums(x, x, mean.data(), by_lines, sum.data(), other.data());
      for (int64_t i = 0; i < c; ++i) mean[i] = static_cast<float>(sum[i] / m);
      channel_squares(x, mean.data(), by_lines, square.data());
      for (int64_t i = 0; i < c; ++i) rstd[i] = static_cast<float>(1.0 / std::sqrt(square[i] / m + eps_));
      if (given(running_mean)) {
        std::vector<float> old = channel_values(running_mean, c, 0);
        for (int64_t i = 0; i < c; ++i) old[i] = static_cast<float>(momentum_ * mean[i] + (1 - momentum_) * old[i]);
        put_channel_values(running_mean, old);
      }
      if (given(running_var)) {   // the running variance is the unbiased one
        std::vector<float> old = channel_values(running_var, c, 0);
        for (int64_t i = 0; i < c; ++i) old[i] = static_cast<float>(momentum_ * (square[i] / (m - 1)) + (1 - momentum_) * old[i]);
        put_channel_values(running_var, old);
      }
    } else {
      mean = channel_values(running_mean, c, 0);
      const std::vector<float> var = channel_values(running_var, c, 1);
      for (int64_t i = 0; i < c; ++i) rstd[i] = static_cast<float>(1.0 / std::sqrt(var[i] + eps_));
    }
    put_channel_values(tensor_of(call, 1), mean);
    put_channel_values(tensor_of(call, 2), rstd);
    for (int64_t i = 0; i < c; ++i) weight[i] *= rstd[i];

    const int64_t units = by_lines ? m : x.n * c;
    const uint64_t pieces = pieces_for(units, m * c);
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t u = units * first / pieces; u < static_cast<int64_t>(units * (first + count) / pieces); ++u) {
        if (by_lines) apply_line(x.line(u), out.line(u), c, mean.data(), weight.data(), bias.data());
        else apply_plane(x.plane(u / c, u % c), out.plane(u / c, u % c), x.s, mean[u % c], weight[u % c], bias[u % c]);
      }
    });
    return FLHAL_OK;
  }

 private:
  const bool training_;
  const double momentum_, eps_;
};

class BatchNormBackwardPlan final : public flhal_p_plan {
 public:
  BatchNormBackwardPlan(bool training, double eps) : training_(training), eps_(eps) {}

  flhal_status run(const flhal_op_call_v1& call, void*) const override {
    // (gx?, gw?, gb?; grad, x, weight?, running_mean?, running_var?, save_mean?, save_rstd?)
    const Activation gx(tensor_of(call, 0)), grad(tensor_of(call, 3)), x(tensor_of(call, 4));
    const bool planes = grad.planes && x.planes && (!gx.base || gx.planes), lines = grad.lines && x.lines && (!gx.base || gx.lines);
    if (!planes && !lines) return FLHAL_DECLINED;
    const bool by_lines = !planes || (x.s == 1 && lines);
    const int64_t c = x.c, m = x.per_channel();
    if (c == 0) return FLHAL_OK;
    const std::vector<float> weight = channel_values(tensor_of(call, 5), c, 1);
    std::vector<float> mean = channel_values(tensor_of(call, training_ ? 8 : 6), c, 0), rstd = channel_values(tensor_of(call, training_ ? 9 : 7), c, 1);
    if (!training_) for (float& v : rstd) v = static_cast<float>(1.0 / std::sqrt(v + eps_));
    std::vector<double> sum(c), product(c);   // of grad, and of grad * (x - mean)
    if (m && (training_ || given(tensor_of(call, 1)) || given(tensor_of(call, 2))))
      channel_sums(grad, x, mean.data(), by_lines, sum.data(), product.data());
    std::vector<float> p(c), q(c), r(c);
    for (int64_t i = 0; i < c; ++i) {
      p[i] = static_cast<float>(product[i] * rstd[i]);
      q[i] = static_cast<float>(sum[i]);
    }
    put_channel_values(tensor_of(call, 1), p);
    put_channel_values(tensor_of(call, 2), q);
    if (!gx.base || m == 0) return FLHAL_OK;
    for (int64_t i = 0; i < c; ++i) {
      p[i] = weight[i] * rstd[i];
      q[i] = training_ ? static_cast<float>(-p[i] * (product[i] / m) * rstd[i] * rstd[i]) : 0;
      r[i] = training_ ? static_cast<float>(-p[i] * (sum[i] / m)) : 0;
    }
    const int64_t units = by_lines ? m : x.n * c;
    const uint64_t pieces = pieces_for(units, m * c);
    for_ranges(pieces, [&](uint64_t first, uint64_t count) {
      for (int64_t u = units * first / pieces; u < static_cast<int64_t>(units * (first + count) / pieces); ++u) {
        const int64_t i = u % c, n = u / c;
        if (by_lines) gradient_line(grad.line(u), x.line(u), gx.line(u), c, mean.data(), p.data(), q.data(), r.data());
        else gradient_plane(grad.plane(n, i), x.plane(n, i), gx.plane(n, i), x.s, mean[i], p[i], q[i], r[i]);
      }
    });
    return FLHAL_OK;
  }

 private:
  const bool training_;
  const double eps_;
};

// Activations must be float32 and walkable together; parameters may be any of the row types.
const char* check(const flhal_op_call_v1& call, std::initializer_list<uint32_t> activations) {
  bool planes = true, lines = true;
  for (uint32_t i : activations) {
    const flhal_tensor_v1& t = tensor_of(call, i);
    if (!given(t)) continue;
    if (t.dtype != FLHAL_F32) return "native batch_norm takes float32";
    if (t.rank < 2) return "native batch_norm needs a channel dimension";
    const Activation a(t);
    planes &= a.planes, lines &= a.lines;
  }
  if (!planes && !lines) return "native batch_norm needs all activations with dense planes, or all channels_last";
  for (uint32_t i = 0; i < call.n_outputs + call.n_inputs; ++i)
    if (given(tensor_of(call, i)) && !is_row_dtype(tensor_of(call, i).dtype)) return "native batch_norm takes float32";
  return nullptr;
}

}  // namespace

const char* make_batch_norm(const flhal_op_call_v1& call, flhal_plan_info_v1& info, std::unique_ptr<flhal_p_plan>& out) {
  info.depends_on = FLHAL_DEPENDS_STRIDES | FLHAL_DEPENDS_SIZES;   // whether planes are dense shows in both
  if (const char* reason = check(call, {0, 3})) return reason;
  out = std::make_unique<BatchNormPlan>(integer_attr(call, FLHAL_ATTR_BATCH_NORM_TRAINING, 0) != 0,
                                        number_attr(call, FLHAL_ATTR_BATCH_NORM_MOMENTUM, 0.1),
                                        number_attr(call, FLHAL_ATTR_BATCH_NORM_EPS, 1e-5));
  return nullptr;
}

const char* make_batch_norm_backward(const flhal_op_call_v1& call, flhal_plan_info_v1& info, std::unique_ptr<flhal_p_plan>& out) {
  info.depends_on = FLHAL_DEPENDS_STRIDES | FLHAL_DEPENDS_SIZES;
  if (const char* reason = check(call, {0, 3, 4})) return reason;
  out = std::make_unique<BatchNormBackwardPlan>(integer_attr(call, FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING, 0) != 0,
                                                number_attr(call, FLHAL_ATTR_BATCH_NORM_BACKWARD_EPS, 1e-5));
  return nullptr;
}

}  // namespace flhal::host
