// tests/kernels/reduce_test.cc: reductions, softmax and norms against double-precision loops, over every set of dimensions.
#include <functional>

#include "reference.h"
#include "run_plan.h"

namespace flhal::test {
namespace {

const flhal_dtype kFloats[] = {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16};

// What rounding the result to `dtype` may cost, plus `terms` roundings of the arithmetic type.
double bound(flhal_dtype dtype, double terms) {
  return epsilon_of(dtype) * 1.001 + terms * epsilon_of(dtype == FLHAL_F64 ? FLHAL_F64 : FLHAL_F32);
}

TEST_CASE("reduction: sums and products computed in bool are of truths, whatever the input holds", "[kernels][reduce]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16})
    for (Layout layout : kLayouts) {
      Array x = Array::values(dtype, {4, 2}, {0.5, 0.25, 0.5, -0.5, 0, 2, 0, 0}, layout);
      Array sum(FLHAL_BOOL, {4, 1}), product(FLHAL_BOOL, {4, 1});
      run_op(FLHAL_OP_SUM, {&sum}, {&x}, FLHAL_BOOL);
      check_close(sum.all(), {1, 1, 1, 0}, 0, 0, "sum " + dtype_name(dtype) + " " + layout_name(layout));
      run_op(FLHAL_OP_PROD, {&product}, {&x}, FLHAL_BOOL);
      check_close(product.all(), {1, 1, 0, 0}, 0, 0, "product " + dtype_name(dtype) + " " + layout_name(layout));
    }
}

TEST_CASE("reduction: sums, means and extremes are right over every set of dimensions, layout and dtype", "[kernels][reduce]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16, FLHAL_I64, FLHAL_I32, FLHAL_I8, FLHAL_U8, FLHAL_BOOL})
    for (Layout layout : kLayouts)
      for (uint32_t mask = 1; mask < 8; ++mask) {
        if (left_out(29)) continue;
        const Sizes sizes = {5, 19, 23};
        bool is_float = epsilon_of(dtype) > 0;
        std::vector<double> v = series(5 * 19 * 23, mask, is_float ? -1 : 0, is_float ? 1.5 : dtype == FLHAL_BOOL ? 2 : 9);
        if (!is_float) for (double& x : v) x = std::floor(x);
        Array x = Array::values(dtype, sizes, v, layout);
        Sizes kept = sizes;
        for (int d = 0; d < 3; ++d) if (mask >> d & 1) kept[static_cast<size_t>(d)] = 1;
        std::string what = dtype_name(dtype) + " " + layout_name(layout) + " mask " + std::to_string(mask);
        auto sum_of = [](const std::vector<double>& t) { double s = 0; for (double e : t) s += e; return s; };
        flhal_dtype wide = is_float ? dtype : FLHAL_I64;
        Array sum(wide, kept);
        run_op(FLHAL_OP_SUM, {&sum}, {&x}, wide);
        check_close(sum.all(), reduce(x, mask, sum_of), bound(dtype, 8), is_float ? 2e-5 * (dtype == FLHAL_F64 ? 1e-8 : 1) : 0, "sum " + what);
        if (is_float) {
          Array mean(dtype, kept), norm(dtype, kept), var(dtype, kept);
          run_op(FLHAL_OP_MEAN, {&mean}, {&x});
          check_close(mean.all(), reduce(x, mask, [&](auto& t) { return sum_of(t) / static_cast<double>(t.size()); }), bound(dtype, 8),
                      dtype == FLHAL_F64 ? 1e-15 : 1e-6, "mean " + what);
          run_op(FLHAL_OP_NORM2, {&norm}, {&x});
          check_close(norm.all(), reduce(x, mask, [](auto& t) { double s = 0; for (double e : t) s += e * e; return std::sqrt(s); }),
                      bound(dtype, 8), 0, "norm2 " + what);
          run_op(FLHAL_OP_VAR, {&var}, {&x}, 0, {Attr::number(FLHAL_ATTR_VAR_CORRECTION, 1)});
          check_close(var.all(), reduce(x, mask, [&](auto& t) {
            double m = sum_of(t) / static_cast<double>(t.size()), s = 0;
            for (double e : t) s += (e - m) * (e - m);
            return s / static_cast<double>(t.size() - 1);
          }), bound(dtype, 16), 0, "var " + what);
        }
        if (dtype != FLHAL_BOOL) {
          Array high(dtype, kept), low(dtype, kept);
          run_op(FLHAL_OP_AMAX, {&high}, {&x});
          check_close(high.all(), reduce(x, mask, [](auto& t) { return *std::max_element(t.begin(), t.end()); }), 0, 0, "amax " + what);
          run_op(FLHAL_OP_AMIN, {&low}, {&x});
          check_close(low.all(), reduce(x, mask, [](auto& t) { return *std::min_element(t.begin(), t.end()); }), 0, 0, "amin " + what);
        }
        Array any(FLHAL_BOOL, kept), all(FLHAL_BOOL, kept);
        run_op(FLHAL_OP_ANY, {&any}, {&x});
        check_close(any.all(), reduce(x, mask, [](auto& t) { return std::any_of(t.begin(), t.end(), [](double e) { return e != 0; }); }), 0, 0, "any " + what);
        run_op(FLHAL_OP_ALL, {&all}, {&x});
        check_close(all.all(), reduce(x, mask, [](auto& t) { return std::all_of(t.begin(), t.end(), [](double e) { return e != 0; }); }), 0, 0, "all " + what);
      }
}

TEST_CASE("reduction: argmax and argmin give the first of equals, and NaN first of all", "[kernels][reduce]") {
  for (Layout layout : kLayouts) {
    Array x = Array::values(FLHAL_F32, {4, 6}, {1, 5, 2, 5, 0, 0, 7, NAN, 9, NAN, 1, 1, -1, -1, -1, -1, -1, -1, 3, 2, 1, 0, 1, 2}, layout);
    Array high(FLHAL_I64, {4, 1}), low(FLHAL_I64, {4, 1}), whole(FLHAL_I64, {1, 1});
    run_op(FLHAL_OP_ARGMAX, {&high}, {&x});
    check_close(high.all(), {1, 1, 0, 0}, 0, 0, "argmax");
    run_op(FLHAL_OP_ARGMIN, {&low}, {&x});
    check_close(low.all(), {4, 1, 0, 3}, 0, 0, "argmin");
    run_op(FLHAL_OP_ARGMAX, {&whole}, {&x});
    check_close(whole.all(), {7}, 0, 0, "argmax of all");
    Array column(FLHAL_I64, {1, 6});
    run_op(FLHAL_OP_ARGMIN, {&column}, {&x});
    check_close(column.all(), {2, 1, 2, 1, 2, 2}, 0, 0, "argmin of columns");
  }
}

TEST_CASE("reduction: NaN and infinities spread as they must", "[kernels][reduce]") {
  std::vector<double> v = series(3000, 4, -1, 1);
  v[1234] = NAN;
  Array x = Array::values(FLHAL_F32, {3000}, v), out(FLHAL_F32, {1});
  for (uint32_t op : {FLHAL_OP_SUM, FLHAL_OP_AMAX, FLHAL_OP_AMIN, FLHAL_OP_MEAN}) {
    run_op(op, {&out}, {&x});
    REQUIRE(std::isnan(out.get(0)));
  }
  Array empty(FLHAL_F32, {0, 3}), sums(FLHAL_F32, {1, 3}), means(FLHAL_F32, {1, 3});
  run_op(FLHAL_OP_SUM, {&sums}, {&empty});
  check_close(sums.all(), {0, 0, 0}, 0, 0, "sum of nothing");
  run_op(FLHAL_OP_MEAN, {&means}, {&empty});
  check_close(means.all(), {NAN, NAN, NAN}, 0, 0, "mean of nothing");
}

TEST_CASE("reduction: a float sum of a million ones and tenths is as exact as a cascade", "[kernels][large][reduce]") {
  Array x = Array::values(FLHAL_F32, {1 << 20}, {0.1}), out(FLHAL_F32, {1});
  run_op(FLHAL_OP_SUM, {&out}, {&x});
  double want = static_cast<double>(0.1f) * (1 << 20);
  REQUIRE(std::fabs(out.get(0) - want) <= 4e-6 * want);
  Array rows = Array::values(FLHAL_F32, {1 << 15, 32}, {0.1}), sums(FLHAL_F32, {1, 32});
  run_op(FLHAL_OP_SUM, {&sums}, {&rows});
  for (double s : sums.all()) REQUIRE(std::fabs(s - static_cast<double>(0.1f) * (1 << 15)) <= 2e-6 * 3276.8);
}

TEST_CASE("softmax: every dimension, layout and dtype, forward and backward", "[kernels][softmax]") {
  for (flhal_dtype dtype : kFloats)
    for (Layout layout : kLayouts)
      for (int64_t dim : {0, 1, 2, -1})
        for (int64_t last : {3, 130, 1025}) {
          if (left_out(41)) continue;
          const Sizes sizes = {3, 4, last};
          const uint32_t mask = 1u << (dim < 0 ? dim + 3 : dim);
          Array x = Array::values(dtype, sizes, series(12 * last, 5, -4, 4), layout), y(dtype, sizes), z(dtype, sizes, Layout::kGappy);
          std::string what = dtype_name(dtype) + " " + layout_name(layout) + " dim " + std::to_string(dim);
          run_op(FLHAL_OP_SOFTMAX, {&y}, {&x}, 0, {Attr::integer(FLHAL_ATTR_SOFTMAX_DIM, dim)});
          std::vector<double> soft = per_row(x, mask, [](std::vector<double> t) {
            double top = *std::max_element(t.begin(), t.end()), s = 0;
            for (double& e : t) s += e = std::exp(e - top);
            for (double& e : t) e /= s;
            return t;
          });
          check_close(y.all(), soft, bound(dtype, 12), 6e-8, "softmax " + what);
          run_op(FLHAL_OP_LOG_SOFTMAX, {&z}, {&x}, 0, {Attr::integer(FLHAL_ATTR_LOG_SOFTMAX_DIM, dim)});
          std::vector<double> logs = soft;
          for (double& e : logs) e = std::log(e);
          check_close(z.all(), logs, bound(dtype, 12), 1e-6, "log_softmax " + what);

          Array g = Array::values(dtype, sizes, series(12 * last, 6, -1, 1), layout), gx(dtype, sizes), gl(dtype, sizes);
          run_op(FLHAL_OP_SOFTMAX_BACKWARD, {&gx}, {&g, &y}, 0, {Attr::integer(FLHAL_ATTR_SOFTMAX_BACKWARD_DIM, dim)});
          std::vector<double> want = per_row2(g, y, mask, [](std::vector<double> a, const std::vector<double>& b) {
            double dot = 0;
            for (size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i];
            for (size_t i = 0; i < a.size(); ++i) a[i] = (a[i] - dot) * b[i];
            return a;
          });
          check_close(gx.all(), want, bound(dtype, 12), 2e-6, "softmax_backward " + what);
          run_op(FLHAL_OP_LOG_SOFTMAX_BACKWARD, {&gl}, {&g, &z}, 0, {Attr::integer(FLHAL_ATTR_LOG_SOFTMAX_BACKWARD_DIM, dim)});
          want = per_row2(g, z, mask, [](std::vector<double> a, const std::vector<double>& b) {
            double s = 0;
            for (double e : a) s += e;
            for (size_t i = 0; i < a.size(); ++i) a[i] -= std::exp(b[i]) * s;
            return a;
          });
          check_close(gl.all(), want, bound(dtype, 12), 1e-5, "log_softmax_backward " + what);
        }
}

TEST_CASE("softmax: a row of -inf is NaN, one with -inf is not", "[kernels][softmax]") {
  Array x = Array::values(FLHAL_F32, {2, 2}, {-INFINITY, -INFINITY, -INFINITY, 3}), y(FLHAL_F32, {2, 2});
  run_op(FLHAL_OP_SOFTMAX, {&y}, {&x});
  check_close(y.all(), {NAN, NAN, 0, 1}, 0, 0, "softmax");
}

// Goal: rows that a work-item keeps (4096 elements), and ones it reads anew in each pass, with NaN and infinities in either.
TEST_CASE("softmax, layer_norm: rows longer and shorter than what is kept between the passes; NaN and inf spread over their row",
          "[kernels][norm][softmax]") {
  for (int64_t length : {40, 5000})
    for (Layout layout : {Layout::kDense, Layout::kTransposed}) {
      if (left_out(3)) continue;
      const auto n = static_cast<size_t>(length);
      std::vector<double> values = series(4 * length, 9, -3, 3);
      values[n + 1] = NAN;
      values[2 * n + n - 1] = INFINITY;
      values[3 * n] = -INFINITY;
      Array x = Array::values(FLHAL_F32, {4, length}, values, layout), y(FLHAL_F32, {4, length}), z(FLHAL_F32, {4, length}, layout);
      const std::string what = std::to_string(length) + " " + layout_name(layout);
      auto softmax = [](std::vector<double> t) {
        double top = -INFINITY, s = 0;
        for (double e : t) top = std::isnan(e) || std::isnan(top) ? NAN : std::max(top, e);
        for (double& e : t) s += e = std::exp(e - top);
        for (double& e : t) e /= s;
        return t;
      };
      run_op(FLHAL_OP_SOFTMAX, {&y}, {&x});
      std::vector<double> want = per_row(x, 2, softmax);
      check_close(y.all(), want, 2e-6, 1e-9, "softmax " + what);
      run_op(FLHAL_OP_LOG_SOFTMAX, {&z}, {&x});
      for (double& e : want) e = std::log(e);
      check_close(z.all(), want, 2e-6, 1e-6, "log_softmax " + what);
      Array w = Array::values(FLHAL_F32, {length}, series(length, 3, 0.5, 2)), b = Array::values(FLHAL_F32, {length}, series(length, 4, -1, 1));
      Array mean(FLHAL_F32, {4, 1}), rstd(FLHAL_F32, {4, 1});
      run_op(FLHAL_OP_LAYER_NORM, {&y, &mean, &rstd}, {&x, &w, &b}, 0,
             {Attr::integer(FLHAL_ATTR_LAYER_NORM_N_DIMS, 1), Attr::number(FLHAL_ATTR_LAYER_NORM_EPS, 1e-5)});
      want = per_row(x, 2, [&](std::vector<double> t) {
        RowStats s = stats_of(t, 1e-5);
        for (size_t i = 0; i < t.size(); ++i) t[i] = (t[i] - s.mean) * s.rstd * w.get(static_cast<int64_t>(i)) + b.get(static_cast<int64_t>(i));
        return t;
      });
      check_close(y.all(), want, 1e-6, 4e-6, "layer_norm " + what);
    }
}

TEST_CASE("layer_norm: statistics, weights and gradients in every layout and dtype", "[kernels][norm]") {
  for (flhal_dtype dtype : kFloats)
    for (Layout layout : kLayouts)
      for (int64_t n_dims : {1, 2})
        for (bool affine : {true, false}) {
          if (left_out(7)) continue;
          const Sizes sizes = {6, 7, 33}, inner = n_dims == 1 ? Sizes{33} : Sizes{7, 33}, stats = n_dims == 1 ? Sizes{6, 7, 1} : Sizes{6, 1, 1};
          const uint32_t mask = n_dims == 1 ? 4 : 6;
          Array x = Array::values(dtype, sizes, series(6 * 7 * 33, 1, 2, 5), layout), g = Array::values(dtype, sizes, series(6 * 7 * 33, 2, -1, 1), layout);
          Array w = Array::values(dtype, inner, series(231, 3, 0.5, 2)), b = Array::values(dtype, inner, series(231, 4, -1, 1)), none = Array::none();
          Array y(dtype, sizes), mean(FLHAL_F32, stats), rstd(FLHAL_F32, stats);
          if (dtype == FLHAL_F64) { mean = Array(dtype, stats); rstd = Array(dtype, stats); }
          std::string what = dtype_name(dtype) + " " + layout_name(layout) + " dims " + std::to_string(n_dims);
          run_op(FLHAL_OP_LAYER_NORM, {&y, &mean, &rstd}, {&x, affine ? &w : &none, affine ? &b : &none}, 0,
                 {Attr::integer(FLHAL_ATTR_LAYER_NORM_N_DIMS, n_dims), Attr::number(FLHAL_ATTR_LAYER_NORM_EPS, 1e-5)});
          std::vector<double> wv = affine ? w.all() : std::vector<double>(231, 1.0), bv = affine ? b.all() : std::vector<double>(231, 0.0);
          std::vector<double> want = per_row(x, mask, [&](std::vector<double> t) {
            RowStats s = stats_of(t, 1e-5);
            for (size_t i = 0; i < t.size(); ++i) t[i] = (t[i] - s.mean) * s.rstd * wv[i] + bv[i];
            return t;
          });
          double loose = dtype == FLHAL_F64 ? 1e-13 : 4e-6;
          check_close(y.all(), want, bound(dtype, 8), loose, "layer_norm " + what);
          check_close(rstd.all(), reduce(x, mask, [](auto& t) { return stats_of(t, 1e-5).rstd; }), 4e-6, 0, "rstd " + what);
          check_close(mean.all(), reduce(x, mask, [](auto& t) { return stats_of(t, 1e-5).mean; }), 4e-7, 0, "mean " + what);

          Array gx(dtype, sizes, layout), gw(dtype, inner), gb(dtype, inner);
          run_op(FLHAL_OP_LAYER_NORM_BACKWARD, {&gx, &gw, &gb}, {&g, &x, &mean, &rstd, affine ? &w : &none}, 0,
                 {Attr::integer(FLHAL_ATTR_LAYER_NORM_BACKWARD_N_DIMS, n_dims)});
          std::vector<double> gwv(wv.size()), gbv(wv.size());
          gwv.assign(static_cast<size_t>(count_of(inner)), 0);
          gbv = gwv;
          want = per_row2(g, x, mask, [&](std::vector<double> a, const std::vector<double>& t) {
            RowStats s = stats_of(t, 1e-5);
            double n = static_cast<double>(t.size()), mg = 0, mgx = 0;
            for (size_t i = 0; i < t.size(); ++i) {
              double hat = (t[i] - s.mean) * s.rstd;
              gwv[i] += a[i] * hat;
              gbv[i] += a[i];
              mg += a[i] * wv[i] / n;
              mgx += a[i] * wv[i] * hat / n;
            }
            for (size_t i = 0; i < t.size(); ++i) a[i] = s.rstd * (a[i] * wv[i] - mg - (t[i] - s.mean) * s.rstd * mgx);
            return a;
          });
          check_close(gx.all(), want, bound(dtype, 8), dtype == FLHAL_F64 ? 1e-12 : 1e-5, "gx " + what);
          check_close(gw.all(), gwv, bound(dtype, 8), dtype == FLHAL_F64 ? 1e-12 : 4e-5, "gw " + what);
          check_close(gb.all(), gbv, bound(dtype, 8), dtype == FLHAL_F64 ? 1e-12 : 1e-5, "gb " + what);
        }
}

TEST_CASE("batch_norm: training moves the running statistics, evaluation uses them; gradients of both", "[kernels][norm]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64})
    for (Layout layout : kLayouts)
      for (bool training : {true, false}) {
        const Sizes sizes = {3, 5, 4, 7};
        const double eps = 1e-5, tight = dtype == FLHAL_F64 ? 1e-12 : 2e-5;
        Array x = Array::values(dtype, sizes, series(420, 1, 1, 3), layout), g = Array::values(dtype, sizes, series(420, 2, -1, 1));
        Array w = Array::values(dtype, {5}, series(5, 3, 0.5, 2)), b = Array::values(dtype, {5}, series(5, 4, -1, 1));
        Array rm = Array::values(dtype, {5}, series(5, 5, 1, 2)), rv = Array::values(dtype, {5}, series(5, 6, 1, 2));
        std::vector<double> rm0 = rm.all(), rv0 = rv.all();
        Array y(dtype, sizes), sm(dtype, {5}), sr(dtype, {5});
        run_op(FLHAL_OP_BATCH_NORM, {&y, &sm, &sr}, {&x, &w, &b, &rm, &rv}, 0,
               {Attr::integer(FLHAL_ATTR_BATCH_NORM_TRAINING, training), Attr::number(FLHAL_ATTR_BATCH_NORM_MOMENTUM, 0.3),
                Attr::number(FLHAL_ATTR_BATCH_NORM_EPS, eps)});
        const uint32_t mask = 1 | 4 | 8;
        std::vector<double> means = reduce(x, mask, [&](auto& t) { return stats_of(t, eps).mean; });
        std::vector<double> vars = reduce(x, mask, [&](auto& t) { return stats_of(t, eps).variance; });
        if (training) {
          for (size_t c = 0; c < 5; ++c) {
            REQUIRE(rm.get(static_cast<int64_t>(c)) == Approx(0.7 * rm0[c] + 0.3 * means[c]).epsilon(1e-5));
            REQUIRE(rv.get(static_cast<int64_t>(c)) == Approx(0.7 * rv0[c] + 0.3 * vars[c] * 84 / 83).epsilon(1e-5));
          }
        } else {
          REQUIRE(rm.all() == rm0);
          means = rm0;
          vars = rv0;
        }
        std::vector<double> want, gw(5), gb(5), gx;
        for (int64_t i = 0; i < 420; ++i) {
          size_t c = static_cast<size_t>(i / 28 % 5);
          double hat = (x.get(i) - means[c]) / std::sqrt(vars[c] + eps);
          want.push_back(hat * w.get(i / 28 % 5) + b.get(i / 28 % 5));
          gw[c] += g.get(i) * hat;
          gb[c] += g.get(i);
        }
        check_close(y.all(), want, tight, tight, "batch_norm " + layout_name(layout));
        Array gxo(dtype, sizes, layout), gwo(dtype, {5}), gbo(dtype, {5});
        run_op(FLHAL_OP_BATCH_NORM_BACKWARD, {&gxo, &gwo, &gbo}, {&g, &x, &w, &rm, &rv, &sm, &sr}, 0,
               {Attr::integer(FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING, training), Attr::number(FLHAL_ATTR_BATCH_NORM_BACKWARD_EPS, eps)});
        for (int64_t i = 0; i < 420; ++i) {
          int64_t ch = i / 28 % 5;
          size_t c = static_cast<size_t>(ch);
          double r = 1 / std::sqrt(vars[c] + eps), hat = (x.get(i) - means[c]) * r;
          gx.push_back(w.get(ch) * r * (training ? g.get(i) - gb[c] / 84 - hat * gw[c] / 84 : g.get(i)));
        }
        check_close(gxo.all(), gx, tight, tight, "gx " + layout_name(layout));
        check_close(gwo.all(), gw, tight, 4 * tight, "gw " + layout_name(layout));
        check_close(gbo.all(), gb, tight, 4 * tight, "gb " + layout_name(layout));
      }
}

TEST_CASE("cumsum: in order along any dimension", "[kernels][reduce]") {
  for (Layout layout : kLayouts)
    for (int64_t dim : {0, 1, -1}) {
      Array x = Array::values(FLHAL_F32, {9, 1500}, series(13500, 2, -1, 1), layout), y(FLHAL_F32, {9, 1500});
      run_op(FLHAL_OP_CUMSUM, {&y}, {&x}, 0, {Attr::integer(FLHAL_ATTR_CUMSUM_DIM, dim)});
      std::vector<double> want = per_row(x, dim == 0 ? 1 : 2, [](std::vector<double> t) {
        for (size_t i = 1; i < t.size(); ++i) t[i] += t[i - 1];
        return t;
      });
      check_close(y.all(), want, 1e-7, 1e-12, "cumsum");
    }
}

}  // namespace
}  // namespace flhal::test
