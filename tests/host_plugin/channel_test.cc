// tests/host_plugin/channel_test.cc: native batch_norm and pooling against double loops.
#include <cmath>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

using Dims = std::vector<int64_t>;

Dims channels_last(const Dims& s) { return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}; }
Dims row_gaps(const Dims& s) { return {s[1] * s[2] * (s[3] + 2), s[2] * (s[3] + 2), s[3] + 2, 1}; }

void check_near(const Tensor& got, const std::vector<double>& want, double tol) {
  double worst = 0;
  for (int64_t i = 0; i < got.count(); ++i) worst = std::max(worst, std::fabs(got.at(i) - want[i]) / (1 + std::fabs(want[i])));
  CHECK(worst < tol);
}

}  // namespace

TEST_CASE("host batch_norm: inference, training and gradients in both layouts", "[host_plugin][batch_norm]") {
  LoadedPlugin p;
  const Dims sizes = GENERATE(Dims{2, 3, 4, 5}, Dims{4, 37, 7, 7}, Dims{3, 64, 1, 1}, Dims{50, 5}, Dims{2, 20, 33}, Dims{1, 3, 90, 70});
  const bool last = GENERATE(false, true);
  if (last && sizes.size() != 4) return;
  const bool affine = GENERATE(true, false), training = GENERATE(false, true);
  const Dims strides = last ? channels_last(sizes) : Dims{};
  const double eps = 1e-5, momentum = 0.1;
  const int64_t c = sizes[1];
  int64_t s = 1;
  for (size_t d = 2; d < sizes.size(); ++d) s *= sizes[d];
  const int64_t m = sizes[0] * s;
  Tensor x(FLHAL_F32, sizes, strides), out(FLHAL_F32, sizes, strides), grad(FLHAL_F32, sizes, strides), gx(FLHAL_F32, sizes, strides);
  Tensor weight(FLHAL_F32, {c}), bias(FLHAL_F32, {c}), running_mean(FLHAL_F32, {c}), running_var(FLHAL_F32, {c});
  Tensor save_mean(FLHAL_F32, {c}), save_rstd(FLHAL_F32, {c}), gw(FLHAL_F32, {c}), gb(FLHAL_F32, {c}), none = Tensor::absent();
  x.fill_random(1), weight.fill_random(2), bias.fill_random(3), grad.fill_random(4), running_mean.fill_random(5);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, x.at(i) * (1 + i / s % c % 3) + 10 * (i / s % c % 5));
  for (int64_t i = 0; i < c; ++i) running_var.set(i, 0.5 + i % 4);
  auto channel = [&](int64_t i) { return i / s % c; };

  std::vector<double> mean(c), var(c), rm(c), rv(c);
  if (training) {
    for (int64_t i = 0; i < x.count(); ++i) mean[channel(i)] += x.at(i) / m;
    for (int64_t i = 0; i < x.count(); ++i) var[channel(i)] += (x.at(i) - mean[channel(i)]) * (x.at(i) - mean[channel(i)]) / m;
  }
  for (int64_t i = 0; i < c; ++i) {
    rm[i] = running_mean.at(i), rv[i] = running_var.at(i);
    if (!training) mean[i] = rm[i], var[i] = rv[i];
    else rm[i] = momentum * mean[i] + (1 - momentum) * rm[i], rv[i] = momentum * var[i] * m / (m - 1) + (1 - momentum) * rv[i];
  }
  std::vector<double> want(x.count()), rstd(c);
  for (int64_t i = 0; i < c; ++i) rstd[i] = 1 / std::sqrt(var[i] + eps);
  for (int64_t i = 0; i < x.count(); ++i)
    want[i] = (x.at(i) - mean[channel(i)]) * rstd[channel(i)] * (affine ? weight.at(channel(i)) : 1) + (affine ? bias.at(channel(i)) : 0);
  const Tensor *w = affine ? &weight : &none, *b = affine ? &bias : &none;
  Attrs attrs;
  attrs.integer(FLHAL_ATTR_BATCH_NORM_TRAINING, training).number(FLHAL_ATTR_BATCH_NORM_MOMENTUM, momentum);
  RunResult r = run_op(p, FLHAL_OP_BATCH_NORM, "batch_norm", {&out, &save_mean, &save_rstd, &x, w, b, &running_mean, &running_var}, 3, attrs);
  INFO(r.reason);
  REQUIRE(r.created == FLHAL_OK);
  REQUIRE(r.ran == FLHAL_OK);
  check_near(out, want, 1e-5);
  check_near(running_mean, rm, 1e-6);
  check_near(running_var, rv, 1e-5);
  check_near(save_mean, mean, 1e-6);
  check_near(save_rstd, rstd, 1e-5);

  // Gradients of the statistics that were stored (rounded), so that only the gradient's own error counts.
  for (int64_t i = 0; training && i < c; ++i) mean[i] = save_mean.at(i), rstd[i] = save_rstd.at(i);
  std::vector<double> gw_want(c), gb_want(c), gx_want(x.count());
  for (int64_t i = 0; i < x.count(); ++i) {
    gw_want[channel(i)] += grad.at(i) * (x.at(i) - mean[channel(i)]) * rstd[channel(i)];
    gb_want[channel(i)] += grad.at(i);
  }
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t k = channel(i);
    const double h = (x.at(i) - mean[k]) * rstd[k], a = (affine ? weight.at(k) : 1) * rstd[k];
    gx_want[i] = a * (grad.at(i) - (training ? gb_want[k] / m + h * gw_want[k] / m : 0));
  }
  Attrs back;
  back.integer(FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING, training);
  r = run_op(p, FLHAL_OP_BATCH_NORM_BACKWARD, "batch_norm_backward",
             {&gx, &gw, &gb, &grad, &x, w, &running_mean, &running_var, &save_mean, &save_rstd}, 3, back);
  REQUIRE(r.created == FLHAL_OK);
  REQUIRE(r.ran == FLHAL_OK);
  check_near(gx, gx_want, 1e-4);
  check_near(gw, gw_want, 1e-4);
  check_near(gb, gb_want, 1e-5);
}

TEST_CASE("host batch_norm: mixed layouts are declined with a reason", "[host_plugin][batch_norm]") {
  LoadedPlugin p;
  const Dims sizes = {2, 3, 4, 5};
  Tensor x(FLHAL_F32, sizes), out(FLHAL_F32, sizes, channels_last(sizes)), none = Tensor::absent(), stat(FLHAL_F32, {3});
  RunResult r = run_op(p, FLHAL_OP_BATCH_NORM, "batch_norm", {&out, &none, &none, &x, &none, &none, &stat, &stat}, 3);
  CHECK(r.created == FLHAL_DECLINED);
  CHECK(r.reason == "native batch_norm needs all activations with dense planes, or all channels_last");
}

TEST_CASE("host pooling: values, positions and gradients in every layout", "[host_plugin][pool]") {
  LoadedPlugin p;
  struct Pool { Dims x; int64_t kernel[2], stride[2], padding[2], dilation[2]; bool ceil; };
  const Pool k = GENERATE(Pool{{2, 3, 8, 9}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, Pool{{1, 20, 11, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
                          Pool{{2, 5, 9, 7}, {3, 2}, {1, 2}, {1, 1}, {2, 1}, false}, Pool{{1, 33, 6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true});
  const int layout = GENERATE(0, 1, 2);
  auto strides = [&](const Dims& s) { return layout == 0 ? Dims{} : layout == 1 ? channels_last(s) : row_gaps(s); };
  Dims out_sizes = k.x;
  for (int i = 0; i < 2; ++i) {
    const int64_t span = k.x[2 + i] + 2 * k.padding[i] - k.dilation[i] * (k.kernel[i] - 1) - 1;
    out_sizes[2 + i] = (span + (k.ceil ? k.stride[i] - 1 : 0)) / k.stride[i] + 1;
    if (k.ceil && (out_sizes[2 + i] - 1) * k.stride[i] >= k.x[2 + i] + k.padding[i]) --out_sizes[2 + i];
  }
  Tensor x(FLHAL_F32, k.x, strides(k.x)), out(FLHAL_F32, out_sizes, strides(out_sizes)), index(FLHAL_I64, out_sizes, strides(out_sizes));
  Tensor grad(FLHAL_F32, out_sizes, strides(out_sizes)), gx(FLHAL_F32, k.x, strides(k.x)), none = Tensor::absent();
  x.fill_random(1), grad.fill_random(2);
  x.set(7, NAN);   // wins in its windows
  const int64_t oh = out_sizes[2], ow = out_sizes[3], h = k.x[2], w = k.x[3], planes = k.x[0] * k.x[1];
  std::vector<double> best(out.count()), where(out.count()), gx_want(x.count()), mean_pad(out.count()), mean(out.count());
  for (int64_t q = 0; q < planes; ++q)
    for (int64_t oy = 0; oy < oh; ++oy)
      for (int64_t ox = 0; ox < ow; ++ox) {
        const int64_t e = (q * oh + oy) * ow + ox;
        best[e] = -INFINITY;
        for (int64_t i = 0; i < k.kernel[0]; ++i)
          for (int64_t j = 0; j < k.kernel[1]; ++j) {
            const int64_t y = oy * k.stride[0] - k.padding[0] + i * k.dilation[0], z = ox * k.stride[1] - k.padding[1] + j * k.dilation[1];
            if (y < 0 || y >= h || z < 0 || z >= w) continue;
            const double v = x.at((q * h + y) * w + z);
            if (v > best[e] || std::isnan(v)) best[e] = v, where[e] = y * w + z;
          }
        gx_want[q * h * w + static_cast<int64_t>(where[e])] += grad.at(e);
      }
  Attrs attrs;
  attrs.ints(FLHAL_ATTR_MAX_POOL2D_KERNEL, {k.kernel[0], k.kernel[1]}).ints(FLHAL_ATTR_MAX_POOL2D_STRIDE, {k.stride[0], k.stride[1]});
  attrs.ints(FLHAL_ATTR_MAX_POOL2D_PADDING, {k.padding[0], k.padding[1]}).ints(FLHAL_ATTR_MAX_POOL2D_DILATION, {k.dilation[0], k.dilation[1]});
  RunResult r = run_op(p, FLHAL_OP_MAX_POOL2D, "max_pool2d", {&out, &index, &x}, 2, attrs);
  REQUIRE(r.created == FLHAL_OK);
  REQUIRE(r.ran == FLHAL_OK);
  bool right = true;
  for (int64_t e = 0; e < out.count(); ++e) {
    right = right && (std::isnan(best[e]) ? std::isnan(out.at(e)) : out.at(e) == best[e]);
    right = right && index.at(e) == where[e];
  }
  CHECK(right);
  REQUIRE(run_op(p, FLHAL_OP_MAX_POOL2D, "max_pool2d", {&out, &none, &x}, 2, attrs).ran == FLHAL_OK);
  REQUIRE(run_op(p, FLHAL_OP_MAX_POOL2D_BACKWARD, "max_pool2d_backward", {&gx, &grad, &index}, 1).ran == FLHAL_OK);
  check_near(gx, gx_want, 1e-6);
  index.set(0, h * w);
  CHECK(run_op(p, FLHAL_OP_MAX_POOL2D_BACKWARD, "max_pool2d_backward", {&gx, &grad, &index}, 1).ran == FLHAL_E_INVALID);

  if (k.dilation[0] != 1 || k.dilation[1] != 1) return;
  x.set(7, 0.5);
  const int64_t divisor = GENERATE(0, 3);
  const bool include = GENERATE(true, false);
  for (int64_t q = 0; q < planes; ++q)
    for (int64_t oy = 0; oy < oh; ++oy)
      for (int64_t ox = 0; ox < ow; ++ox) {
        double sum = 0;
        int64_t inside = 0, padded = 0;
        for (int64_t i = 0; i < k.kernel[0]; ++i)
          for (int64_t j = 0; j < k.kernel[1]; ++j) {
            const int64_t y = oy * k.stride[0] - k.padding[0] + i, z = ox * k.stride[1] - k.padding[1] + j;
            padded += y < h + k.padding[0] && z < w + k.padding[1];
            if (y < 0 || y >= h || z < 0 || z >= w) continue;
            ++inside, sum += x.at((q * h + y) * w + z);
          }
        mean[(q * oh + oy) * ow + ox] = sum / (divisor ? divisor : include ? padded : inside);
      }
  Attrs avg;
  avg.ints(FLHAL_ATTR_AVG_POOL2D_KERNEL, {k.kernel[0], k.kernel[1]}).ints(FLHAL_ATTR_AVG_POOL2D_STRIDE, {k.stride[0], k.stride[1]});
  avg.ints(FLHAL_ATTR_AVG_POOL2D_PADDING, {k.padding[0], k.padding[1]}).integer(FLHAL_ATTR_AVG_POOL2D_COUNT_INCLUDE_PAD, include);
  avg.integer(FLHAL_ATTR_AVG_POOL2D_DIVISOR, divisor);
  REQUIRE(run_op(p, FLHAL_OP_AVG_POOL2D, "avg_pool2d", {&out, &x}, 1, avg).ran == FLHAL_OK);
  check_near(out, mean, 1e-6);
}
