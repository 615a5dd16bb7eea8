// tests/host_plugin/conv_test.cc: native convolution and its gradients against seven nested loops in double precision.
#include <cmath>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

using Dims = std::vector<int64_t>;
enum class Layout { kPlain, kChannelsLast, kOdd };

Dims strides_of(const Dims& s, Layout layout) {
  if (layout == Layout::kChannelsLast) return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  if (layout == Layout::kOdd) {   // rows with gaps
    const int64_t row = s[3] + 3, plane = row * s[2] + 5;
    return {plane * s[1], plane, row, 1};
  }
  return {};
}

struct Case {
  const char* what;
  int64_t n, c, h, w, o, kh, kw, stride[2], padding[2], dilation[2], groups;
};
const Case kCases[] = {
    {"3x3", 2, 5, 9, 8, 7, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"1x1", 2, 32, 6, 6, 16, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
    {"7x7, stride 2, three channels", 1, 3, 20, 21, 16, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1},
    {"different per axis", 1, 4, 11, 13, 6, 3, 2, {2, 1}, {0, 2}, {1, 3}, 1},
    {"groups", 2, 8, 7, 7, 12, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4},
    {"depthwise", 1, 16, 9, 9, 16, 3, 3, {2, 2}, {1, 1}, {1, 1}, 16},
    {"whole plane", 3, 4, 5, 5, 8, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1},
    {"one pixel", 2, 16, 1, 1, 8, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
    {"one channel", 1, 1, 8, 8, 1, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"the last rows are never read", 1, 4, 8, 8, 4, 2, 2, {3, 3}, {0, 0}, {1, 1}, 1},
};

// Calls f(out index, x index, w index) for every product of the convolution.
template <class F>
void for_each_product(const Case& k, int64_t oh, int64_t ow, F&& f) {
  const int64_t cg = k.c / k.groups, og = k.o / k.groups;
  for (int64_t n = 0; n < k.n; ++n)
    for (int64_t o = 0; o < k.o; ++o)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t i = 0; i < k.kh; ++i)
              for (int64_t j = 0; j < k.kw; ++j) {
                const int64_t yy = y * k.stride[0] - k.padding[0] + i * k.dilation[0];
                const int64_t xx = x * k.stride[1] - k.padding[1] + j * k.dilation[1];
                if (yy < 0 || yy >= k.h || xx < 0 || xx >= k.w) continue;
                f(((n * k.o + o) * oh + y) * ow + x, ((n * k.c + o / og * cg + c) * k.h + yy) * k.w + xx,
                  ((o * cg + c) * k.kh + i) * k.kw + j);
              }
}

void check(const Tensor& got, const std::vector<double>& want, const std::vector<double>& magnitude, double rtol) {
  double worst = 0;
  for (int64_t i = 0; i < got.count(); ++i)
    worst = std::max(worst, std::fabs(got.at(i) - want[i]) / (magnitude[i] + 1e-6));
  CHECK(worst < rtol);
}

Attrs attrs_of(uint32_t op, const Case& k) {
  Attrs a;
  a.ints(op << 8 | 1, {k.stride[0], k.stride[1]}).ints(op << 8 | 2, {k.padding[0], k.padding[1]});
  a.ints(op << 8 | 3, {k.dilation[0], k.dilation[1]}).integer(op << 8 | 4, k.groups);
  return a;
}

}  // namespace

TEST_CASE("host conv2d: forward and gradients in every layout", "[host_plugin][conv]") {
  LoadedPlugin p;
  const flhal_dtype dtype = GENERATE(FLHAL_F32, FLHAL_BF16);
  const Layout layout = GENERATE(Layout::kPlain, Layout::kChannelsLast, Layout::kOdd);
  const double rtol = dtype == FLHAL_F32 ? 1e-6 : 1e-2;
  for (const Case& k : kCases) {
    DYNAMIC_SECTION(k.what << ", layout " << static_cast<int>(layout) << ", dtype " << dtype) {
      const int64_t oh = (k.h + 2 * k.padding[0] - k.dilation[0] * (k.kh - 1) - 1) / k.stride[0] + 1;
      const int64_t ow = (k.w + 2 * k.padding[1] - k.dilation[1] * (k.kw - 1) - 1) / k.stride[1] + 1;
      const Dims xs = {k.n, k.c, k.h, k.w}, ws = {k.o, k.c / k.groups, k.kh, k.kw}, ys = {k.n, k.o, oh, ow};
      Tensor x(dtype, xs, strides_of(xs, layout)), w(dtype, ws, strides_of(ws, layout)), y(dtype, ys, strides_of(ys, layout));
      Tensor gx(dtype, xs, strides_of(xs, layout)), gw(dtype, ws, strides_of(ws, layout)), grad(dtype, ys, strides_of(ys, layout));
      Tensor bias(dtype, {k.o}), none = Tensor::absent();
      x.fill_random(1), w.fill_random(2), bias.fill_random(3), grad.fill_random(4);
      std::vector<double> out(y.count()), gx_want(x.count()), gw_want(w.count());
      std::vector<double> out_m(y.count()), gx_m(x.count()), gw_m(w.count());
      for_each_product(k, oh, ow, [&](int64_t iy, int64_t ix, int64_t iw) {
        out[iy] += x.at(ix) * w.at(iw), out_m[iy] += std::fabs(x.at(ix) * w.at(iw));
        gx_want[ix] += grad.at(iy) * w.at(iw), gx_m[ix] += std::fabs(grad.at(iy) * w.at(iw));
        gw_want[iw] += grad.at(iy) * x.at(ix), gw_m[iw] += std::fabs(grad.at(iy) * x.at(ix));
      });

      RunResult r = run_op(p, FLHAL_OP_CONV2D, "conv2d", {&y, &x, &w, &none}, 1, attrs_of(FLHAL_OP_CONV2D, k), 2);
      INFO(r.reason);
      if (dtype == FLHAL_BF16 && r.created == FLHAL_DECLINED) return;   // a processor without bfloat16 convolution
      REQUIRE(r.created == FLHAL_OK);
      REQUIRE(r.ran == FLHAL_OK);
      check(y, out, out_m, rtol);
      for (int64_t i = 0; i < y.count(); ++i) {
        const double b = bias.at(i / (oh * ow) % k.o);
        out[i] += b, out_m[i] += std::fabs(b);
      }
      r = run_op(p, FLHAL_OP_CONV2D, "conv2d", {&y, &x, &w, &bias}, 1, attrs_of(FLHAL_OP_CONV2D, k));
      REQUIRE(r.ran == FLHAL_OK);
      check(y, out, out_m, rtol);

      r = run_op(p, FLHAL_OP_CONV2D_BACKWARD_INPUT, "conv2d_backward_input", {&gx, &grad, &w}, 1,
                 attrs_of(FLHAL_OP_CONV2D_BACKWARD_INPUT, k));
      UNSCOPED_INFO("input gradient: " << r.reason);
      REQUIRE(r.created == FLHAL_OK);
      check(gx, gx_want, gx_m, rtol);
      r = run_op(p, FLHAL_OP_CONV2D_BACKWARD_WEIGHT, "conv2d_backward_weight", {&gw, &grad, &x}, 1,
                 attrs_of(FLHAL_OP_CONV2D_BACKWARD_WEIGHT, k));
      UNSCOPED_INFO("weight gradient: " << r.reason);
      REQUIRE(r.created == FLHAL_OK);
      check(gw, gw_want, gw_m, rtol);
    }
  }
}
