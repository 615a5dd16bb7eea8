// tests/kernels/matrix_test.cc: matmul, convolution and pooling against plain loops in double precision.
#include "run_plan.h"

namespace flhal::test {
namespace {

TEST_CASE("matmul: sizes around the register tile, every layout and dtype", "[kernels][matmul]") {
  const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 1}, {5, 3, 17}, {6, 16, 16}, {12, 32, 33}, {13, 300, 35}, {200, 20, 70}, {3, 0, 4}, {97, 260, 129}};
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16, FLHAL_I64, FLHAL_I32, FLHAL_I8, FLHAL_C64, FLHAL_C128})
    for (Layout la : {Layout::kDense, Layout::kTransposed, Layout::kStepped})
      for (Layout lb : {Layout::kDense, Layout::kTransposed, Layout::kGappy})
        for (auto& [m, k, n] : shapes) {
          if (m * k * n > 1000000 && dtype != FLHAL_F32 && dtype != FLHAL_F16) continue;
          if (left_out(m * k * n > 20000 ? 61 : 17)) continue;
          bool is_float = epsilon_of(dtype) > 0;
          auto values = [&](int64_t count, uint64_t seed) {
            std::vector<double> v = series(count, seed, -2, 2);
            if (!is_float) for (double& x : v) x = std::floor(x);
            if (v.empty()) v.push_back(0);
            return v;
          };
          Array a = Array::values(dtype, {m, k}, values(m * k, 1), la), b = Array::values(dtype, {k, n}, values(k * n, 2), lb);
          Array out(dtype, {m, n}, la);
          run_op(FLHAL_OP_MATMUL, {&out}, {&a, &b});
          std::vector<double> av = a.all(), bv = b.all(), want;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double s = 0;
              for (int64_t l = 0; l < k; ++l) s += av[static_cast<size_t>(i * k + l)] * bv[static_cast<size_t>(l * n + j)];
              if (dtype == FLHAL_I8) s = static_cast<int8_t>(static_cast<int64_t>(s));
              want.push_back(s);
            }
          double eps = epsilon_of(dtype) == epsilon_of(FLHAL_F64) ? epsilon_of(FLHAL_F64) : epsilon_of(FLHAL_F32);
          check_close(out.all(), want, is_float ? 1.01 * epsilon_of(dtype) : 0, is_float ? eps * 8 * static_cast<double>(k + 1) : 0,
                      "matmul " + dtype_name(dtype) + " " + layout_name(la) + " " + layout_name(lb) + " " + std::to_string(m) + "x" +
                          std::to_string(k) + "x" + std::to_string(n));
        }
}

TEST_CASE("matmul: batches broadcast, alpha and beta scale, beta 0 does not look at c", "[kernels][matmul]") {
  Array a = Array::values(FLHAL_F32, {2, 3, 5, 7}, series(210, 1, -1, 1)), b = Array::values(FLHAL_F32, {3, 7, 4}, series(84, 2, -1, 1), Layout::kTransposed);
  Array c = Array::values(FLHAL_F32, {4}, series(4, 3, -1, 1)), out(FLHAL_F32, {2, 3, 5, 4});
  auto want = [&](double alpha, double beta) {
    std::vector<double> w;
    for (int64_t i = 0; i < 2 * 3 * 5 * 4; ++i) {
      int64_t col = i % 4, row = i / 4, batch = row / 5 % 3;
      double s = 0;
      for (int64_t l = 0; l < 7; ++l) s += a.get(row * 7 + l) * b.get((batch * 7 + l) * 4 + col);
      w.push_back(alpha * s + (beta != 0 ? beta * c.get(col) : 0));
    }
    return w;
  };
  run_op(FLHAL_OP_MATMUL, {&out}, {&a, &b, &c}, 0, {Attr::number(FLHAL_ATTR_MATMUL_ALPHA, 0.5), Attr::number(FLHAL_ATTR_MATMUL_BETA, 2)});
  check_close(out.all(), want(0.5, 2), 1e-6, 1e-6, "alpha beta");
  c.set(1, NAN);
  run_op(FLHAL_OP_MATMUL, {&out}, {&a, &b, &c}, 0, {Attr::number(FLHAL_ATTR_MATMUL_BETA, 0)});
  check_close(out.all(), want(1, 0), 1e-6, 1e-6, "beta 0");
}

TEST_CASE("matmul: a Linear layer over a batch is one product, also with a bias and a converted output", "[kernels][matmul]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_BF16}) {
    if (left_out(2)) continue;
    Array a = Array::values(dtype, {3, 50, 40}, series(6000, 1, -1, 1)), w = Array::values(dtype, {40, 300}, series(12000, 2, -1, 1), Layout::kTransposed);
    Array bias = Array::values(dtype, {300}, series(300, 3, -1, 1)), out(dtype, {3, 50, 300});
    run_op(FLHAL_OP_MATMUL, {&out}, {&a, &w, &bias});
    std::vector<double> av = a.all(), wv = w.all(), want;
    for (size_t i = 0; i < 150; ++i)
      for (size_t j = 0; j < 300; ++j) {
        double s = bias.get(static_cast<int64_t>(j));
        for (size_t l = 0; l < 40; ++l) s += av[i * 40 + l] * wv[l * 300 + j];
        want.push_back(s);
      }
    check_close(out.all(), want, epsilon_of(dtype) * 1.01, 1e-5, "linear " + dtype_name(dtype));
  }
}

struct Geometry { int64_t n, ic, oc, h, w, kh, kw, sh, sw, ph, pw, dh, dw, groups; };

TEST_CASE("conv2d: forward and both gradients for strides, paddings, dilations, groups and layouts", "[kernels][conv]") {
  const Geometry shapes[] = {
      {2, 3, 5, 9, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 4, 6, 11, 13, 3, 2, 2, 3, 2, 1, 1, 1, 2}, {2, 8, 8, 7, 7, 1, 1, 1, 1, 0, 0, 1, 1, 1},
      {1, 6, 6, 10, 40, 3, 3, 1, 1, 1, 1, 1, 1, 6}, {1, 3, 6, 9, 9, 3, 3, 2, 2, 1, 1, 1, 1, 3}, {1, 2, 3, 12, 12, 3, 3, 1, 1, 2, 2, 2, 2, 1},
      {1, 3, 100, 20, 21, 7, 7, 2, 2, 3, 3, 1, 1, 1}, {2, 5, 3, 4, 4, 1, 1, 2, 2, 0, 0, 1, 1, 1}, {1, 40, 7, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {2, 4, 3, 9, 10, 3, 2, 3, 2, 4, 1, 2, 3, 1}, {1, 2, 2, 3, 3, 3, 3, 1, 1, 2, 2, 1, 1, 1}};
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_BF16})
    for (Layout layout : kLayouts)
      for (const Geometry& s : shapes) {
        if (left_out(s.ic * s.oc * s.kh * s.kw > 5000 ? 1000000 : 29)) continue;   // the largest takes an interpreter an hour
        const int64_t oh = (s.h + 2 * s.ph - s.dh * (s.kh - 1) - 1) / s.sh + 1, ow = (s.w + 2 * s.pw - s.dw * (s.kw - 1) - 1) / s.sw + 1;
        const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
        auto make = [&](Sizes sizes, uint64_t seed) { return Array::values(dtype, sizes, series(count_of(sizes), seed, -1, 1), layout); };
        Array x = make({s.n, s.ic, s.h, s.w}, 1), w = make({s.oc, icg, s.kh, s.kw}, 2), g = make({s.n, s.oc, oh, ow}, 4);
        Array bias = Array::values(dtype, {s.oc}, series(s.oc, 3, -1, 1));
        Array y(dtype, {s.n, s.oc, oh, ow}, layout), gx(dtype, {s.n, s.ic, s.h, s.w}), gw(dtype, {s.oc, icg, s.kh, s.kw}, layout);
        auto attrs = [&](uint32_t stride, uint32_t padding, uint32_t dilation, uint32_t groups) {
          return std::vector<Attr>{Attr::ints(stride, {s.sh, s.sw}), Attr::ints(padding, {s.ph, s.pw}), Attr::ints(dilation, {s.dh, s.dw}),
                                   Attr::integer(groups, s.groups)};
        };
        run_op(FLHAL_OP_CONV2D, {&y}, {&x, &w, &bias}, 0,
               attrs(FLHAL_ATTR_CONV2D_STRIDE, FLHAL_ATTR_CONV2D_PADDING, FLHAL_ATTR_CONV2D_DILATION, FLHAL_ATTR_CONV2D_GROUPS));
        run_op(FLHAL_OP_CONV2D_BACKWARD_INPUT, {&gx}, {&g, &w}, 0,
               attrs(FLHAL_ATTR_CONV2D_BACKWARD_INPUT_STRIDE, FLHAL_ATTR_CONV2D_BACKWARD_INPUT_PADDING,
                     FLHAL_ATTR_CONV2D_BACKWARD_INPUT_DILATION, FLHAL_ATTR_CONV2D_BACKWARD_INPUT_GROUPS));
        run_op(FLHAL_OP_CONV2D_BACKWARD_WEIGHT, {&gw}, {&g, &x}, 0,
               attrs(FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_STRIDE, FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_PADDING,
                     FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_DILATION, FLHAL_ATTR_CONV2D_BACKWARD_WEIGHT_GROUPS));
        std::vector<double> xv = x.all(), wv = w.all(), gv = g.all(), yw, gxw(xv.size()), gww(wv.size());
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t o = 0; o < s.oc; ++o)
            for (int64_t i = 0; i < oh; ++i)
              for (int64_t j = 0; j < ow; ++j) {
                double sum = bias.get(o), grad = gv[static_cast<size_t>(((n * s.oc + o) * oh + i) * ow + j)];
                for (int64_t c = 0; c < icg; ++c)
                  for (int64_t r = 0; r < s.kh; ++r)
                    for (int64_t q = 0; q < s.kw; ++q) {
                      int64_t ih = i * s.sh - s.ph + r * s.dh, iw = j * s.sw - s.pw + q * s.dw;
                      if (ih < 0 || ih >= s.h || iw < 0 || iw >= s.w) continue;
                      size_t xi = static_cast<size_t>(((n * s.ic + o / ocg * icg + c) * s.h + ih) * s.w + iw);
                      size_t wi = static_cast<size_t>(((o * icg + c) * s.kh + r) * s.kw + q);
                      sum += xv[xi] * wv[wi];
                      gxw[xi] += grad * wv[wi];
                      gww[wi] += grad * xv[xi];
                    }
                yw.push_back(sum);
              }
        double relative = epsilon_of(dtype) * 1.01, absolute = dtype == FLHAL_F64 ? 1e-12 : 6e-5;
        std::string what = dtype_name(dtype) + " " + layout_name(layout) + " ic " + std::to_string(s.ic) + " k " + std::to_string(s.kh);
        check_close(y.all(), yw, relative, absolute, "conv2d " + what);
        check_close(gx.all(), gxw, relative, absolute, "gx " + what);
        check_close(gw.all(), gww, relative, absolute, "gw " + what);
      }
}

TEST_CASE("pool: max with its index and gradient, average with and without padding counted", "[kernels][pool]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_F16})
    for (Layout layout : kLayouts) {
      Array x = Array::values(dtype, {2, 3, 9, 10}, series(540, 1, -1, 1), layout);
      x.set(77, NAN);
      Array y(dtype, {2, 3, 5, 5}, layout), index(FLHAL_I64, {2, 3, 5, 5}), gx(dtype, {2, 3, 9, 10}, layout), g = Array::values(dtype, {2, 3, 5, 5}, {1});
      run_op(FLHAL_OP_MAX_POOL2D, {&y, &index}, {&x}, 0,
             {Attr::ints(FLHAL_ATTR_MAX_POOL2D_KERNEL, {3, 3}), Attr::ints(FLHAL_ATTR_MAX_POOL2D_STRIDE, {2, 2}), Attr::ints(FLHAL_ATTR_MAX_POOL2D_PADDING, {1, 1})});
      std::vector<double> want(540);
      for (int64_t i = 0; i < 150; ++i) {
        int64_t ow = i % 5, oh = i / 5 % 5, plane = i / 25, at = -1;
        double best = -INFINITY;
        for (int64_t r = -1; r < 2; ++r)
          for (int64_t q = -1; q < 2; ++q) {
            int64_t h = oh * 2 + r, w = ow * 2 + q;
            if (h < 0 || h >= 9 || w < 0 || w >= 10) continue;
            double v = x.get(plane * 90 + h * 10 + w);
            if (at < 0 || v > best || std::isnan(v)) { best = v; at = h * 10 + w; }
          }
        REQUIRE((y.get(i) == best || (std::isnan(best) && std::isnan(y.get(i)))));
        REQUIRE(index.get(i) == static_cast<double>(at));
        want[static_cast<size_t>(plane * 90 + at)] += 1;
      }
      run_op(FLHAL_OP_MAX_POOL2D_BACKWARD, {&gx}, {&g, &index});
      check_close(gx.all(), want, 0, 0, "max_pool2d_backward");
      x.set(77, 0.5);
      for (bool counted : {true, false}) {
        Array a(dtype, {2, 3, 5, 6}, layout);
        run_op(FLHAL_OP_AVG_POOL2D, {&a}, {&x}, 0,
               {Attr::ints(FLHAL_ATTR_AVG_POOL2D_KERNEL, {3, 2}), Attr::ints(FLHAL_ATTR_AVG_POOL2D_STRIDE, {2, 2}),
                Attr::ints(FLHAL_ATTR_AVG_POOL2D_PADDING, {1, 1}), Attr::integer(FLHAL_ATTR_AVG_POOL2D_COUNT_INCLUDE_PAD, counted)});
        for (int64_t i = 0; i < 180; ++i) {
          int64_t ow = i % 6, oh = i / 6 % 5, plane = i / 30;
          double s = 0, n = 0;
          for (int64_t h = oh * 2 - 1; h < oh * 2 + 2; ++h)
            for (int64_t w = ow * 2 - 1; w < ow * 2 + 1; ++w) {
              if (h < 0 || h >= 9 || w < 0 || w >= 10) continue;
              s += x.get(plane * 90 + h * 10 + w);
              n += 1;
            }
          REQUIRE(a.get(i) == Approx(s / (counted ? 6 : n)).epsilon(1e-3).margin(1e-4));
        }
      }
    }
}

}  // namespace
}  // namespace flhal::test
