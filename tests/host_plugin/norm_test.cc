// tests/host_plugin/norm_test.cc: native softmax and layer_norm, forward and backward, against double loops.
#include <cmath>
#include <functional>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

using Dims = std::vector<int64_t>;

// Calls f(indices of the elements of one line along `dim`) for every line.
void for_each_line(const Tensor& t, int64_t dim, const std::function<void(const std::vector<int64_t>&)>& f) {
  int64_t inner = 1, n = t.sizes()[dim];
  for (size_t d = dim + 1; d < t.sizes().size(); ++d) inner *= t.sizes()[d];
  for (int64_t base = 0; base < t.count(); ++base) {
    if (base / inner % n != 0) continue;
    std::vector<int64_t> line(n);
    for (int64_t i = 0; i < n; ++i) line[i] = base + i * inner;
    f(line);
  }
}

double tolerance(flhal_dtype t) { return t == FLHAL_F32 ? 2e-6 : 1e-2; }

void check_near(const Tensor& got, const std::vector<double>& want, double tol) {
  double worst = 0;
  for (int64_t i = 0; i < got.count(); ++i) worst = std::max(worst, std::fabs(got.at(i) - want[i]) / (1 + std::fabs(want[i])));
  CHECK(worst < tol);
}

struct Shape { Dims sizes, strides; int64_t dim; };

}  // namespace

TEST_CASE("host softmax: rows of every length, layout and dtype, and their gradients", "[host_plugin][softmax]") {
  LoadedPlugin p;
  const flhal_dtype dtype = GENERATE(FLHAL_F32, FLHAL_BF16);
  const Shape shape = GENERATE(
      Shape{{3, 1}, {}, -1}, Shape{{2, 7}, {}, -1}, Shape{{5, 16}, {}, 1}, Shape{{4, 100}, {}, -1}, Shape{{2, 3, 130}, {}, 2},
      Shape{{6, 9, 5}, {}, 1}, Shape{{17, 40}, {1, 17}, -1}, Shape{{3, 4, 33}, {200, 40, 1}, -1}, Shape{{300, 129}, {}, -1},
      Shape{{40}, {}, 0}, Shape{{}, {}, -1});
  const double scale = GENERATE(1.0, 40.0);
  Tensor x(dtype, shape.sizes, shape.strides), y(dtype, shape.sizes, shape.strides), ly(dtype, shape.sizes, shape.strides);
  Tensor grad(dtype, shape.sizes, shape.strides), gx(dtype, shape.sizes, shape.strides);
  x.fill_random(1, scale), grad.fill_random(2);
  std::vector<double> soft(x.count()), log_soft(x.count());
  auto lines = [&](const std::function<void(const std::vector<int64_t>&)>& f) {
    if (shape.sizes.empty()) f({0});
    else for_each_line(x, shape.dim < 0 ? shape.dim + static_cast<int64_t>(shape.sizes.size()) : shape.dim, f);
  };
  lines([&](const std::vector<int64_t>& line) {
    double m = -INFINITY, sum = 0;
    for (int64_t i : line) m = std::max(m, x.at(i));
    for (int64_t i : line) sum += std::exp(x.at(i) - m);
    for (int64_t i : line) soft[i] = std::exp(x.at(i) - m) / sum, log_soft[i] = x.at(i) - m - std::log(sum);
  });
  auto attrs = [&](uint32_t op) {
    Attrs a;
    if (shape.dim != -1) a.integer(op << 8 | 1, shape.dim);
    return a;
  };
  RunResult r = run_op(p, FLHAL_OP_SOFTMAX, "softmax", {&y, &x}, 1, attrs(FLHAL_OP_SOFTMAX));
  REQUIRE(r.ran == FLHAL_OK);
  REQUIRE(r.created == FLHAL_OK);
  CHECK(r.info.depends_on == 0);
  check_near(y, soft, tolerance(dtype));
  REQUIRE(run_op(p, FLHAL_OP_LOG_SOFTMAX, "log_softmax", {&ly, &x}, 1, attrs(FLHAL_OP_LOG_SOFTMAX)).ran == FLHAL_OK);
  check_near(ly, log_soft, tolerance(dtype));

  // Gradients of the y that was stored (rounded), so that only the gradient's own error counts.
  std::vector<double> g_soft(x.count()), g_log(x.count());
  lines([&](const std::vector<int64_t>& line) {
    double dot = 0, sum = 0;
    for (int64_t i : line) dot += grad.at(i) * y.at(i), sum += grad.at(i);
    for (int64_t i : line) g_soft[i] = y.at(i) * (grad.at(i) - dot), g_log[i] = grad.at(i) - std::exp(ly.at(i)) * sum;
  });
  REQUIRE(run_op(p, FLHAL_OP_SOFTMAX_BACKWARD, "softmax_backward", {&gx, &grad, &y}, 1, attrs(FLHAL_OP_SOFTMAX_BACKWARD)).ran == FLHAL_OK);
  check_near(gx, g_soft, tolerance(dtype));
  REQUIRE(run_op(p, FLHAL_OP_LOG_SOFTMAX_BACKWARD, "log_softmax_backward", {&gx, &grad, &ly}, 1, attrs(FLHAL_OP_LOG_SOFTMAX_BACKWARD)).ran == FLHAL_OK);
  check_near(gx, g_log, 5 * tolerance(dtype));
}

TEST_CASE("host softmax: infinities and NaN do what IEEE arithmetic says", "[host_plugin][softmax]") {
  LoadedPlugin p;
  Tensor x(FLHAL_F32, {4, 20}), y(FLHAL_F32, {4, 20});
  x.fill_random(1);
  for (int i = 5; i < 20; ++i) x.set(i, -INFINITY);         // a masked row
  for (int i = 0; i < 20; ++i) x.set(20 + i, -INFINITY);    // nothing left: NaN, as torch
  x.set(40 + 3, NAN);
  x.set(60 + 3, INFINITY);
  REQUIRE(run_op(p, FLHAL_OP_SOFTMAX, "softmax", {&y, &x}, 1).ran == FLHAL_OK);
  double sum = 0;
  for (int i = 0; i < 20; ++i) sum += y.at(i);
  CHECK(std::fabs(sum - 1) < 1e-6);
  for (int i = 5; i < 20; ++i) CHECK(y.at(i) == 0);
  for (int i = 20; i < 80; ++i) CHECK((std::isnan(y.at(i)) || (i >= 60 && y.at(i) == 0)));
  CHECK(std::isnan(y.at(63)));
}

TEST_CASE("host layer_norm: values, statistics and gradients in every layout", "[host_plugin][layer_norm]") {
  LoadedPlugin p;
  struct Layer { Dims sizes, strides; int64_t n_dims; };
  const flhal_dtype dtype = GENERATE(FLHAL_F32, FLHAL_BF16);
  const Layer l = GENERATE(Layer{{4, 1}, {}, 1}, Layer{{3, 5}, {}, 1}, Layer{{6, 384}, {}, 1}, Layer{{2, 3, 100}, {}, 1},
                           Layer{{4, 6, 7}, {}, 2}, Layer{{300, 77}, {}, 1}, Layer{{9, 20}, {1, 9}, 1}, Layer{{3, 4, 5}, {100, 1, 8}, 2},
                           Layer{{37}, {}, 1});
  const bool affine = GENERATE(true, false);
  const double shift = GENERATE(0.0, 1000.0);
  if (dtype == FLHAL_BF16 && shift != 0) return;   // eight bits of mantissa leave nothing of x
  const double eps = 1e-5;
  Dims normalised(l.sizes.end() - l.n_dims, l.sizes.end()), stats = l.sizes;
  for (int64_t i = 0; i < l.n_dims; ++i) stats[stats.size() - 1 - i] = 1;
  Tensor x(dtype, l.sizes, l.strides), out(dtype, l.sizes, l.strides), mean(FLHAL_F32, stats), rstd(FLHAL_F32, stats);
  Tensor weight(dtype, normalised), bias(dtype, normalised), none = Tensor::absent();
  x.fill_random(1), weight.fill_random(2), bias.fill_random(3);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, x.at(i) + shift);
  const int64_t n = weight.count(), rows = x.count() / n;

  Attrs attrs;
  attrs.integer(FLHAL_ATTR_LAYER_NORM_N_DIMS, l.n_dims).number(FLHAL_ATTR_LAYER_NORM_EPS, eps);
  const Tensor *w = affine ? &weight : &none, *b = affine ? &bias : &none;
  RunResult r = run_op(p, FLHAL_OP_LAYER_NORM, "layer_norm", {&out, &mean, &rstd, &x, w, b}, 3, attrs);
  INFO(r.reason);
  REQUIRE(r.created == FLHAL_OK);
  REQUIRE(r.ran == FLHAL_OK);
  std::vector<double> want(x.count()), want_mean(rows), want_rstd(rows);
  for (int64_t i = 0; i < rows; ++i) {
    double m = 0, v = 0;
    for (int64_t j = 0; j < n; ++j) m += x.at(i * n + j) / n;
    for (int64_t j = 0; j < n; ++j) v += (x.at(i * n + j) - m) * (x.at(i * n + j) - m) / n;
    want_mean[i] = m, want_rstd[i] = 1 / std::sqrt(v + eps);
    for (int64_t j = 0; j < n; ++j)
      want[i * n + j] = (x.at(i * n + j) - m) * want_rstd[i] * (affine ? weight.at(j) : 1) + (affine ? bias.at(j) : 0);
  }
  const double tol = dtype == FLHAL_BF16 ? 2e-2 : shift != 0 ? 2e-3 : 5e-6;
  check_near(out, want, tol);
  check_near(mean, want_mean, tol);
  if (n > 1) check_near(rstd, want_rstd, tol);
  // Without the optional results.
  REQUIRE(run_op(p, FLHAL_OP_LAYER_NORM, "layer_norm", {&out, &none, &none, &x, w, b}, 3, attrs).ran == FLHAL_OK);
  check_near(out, want, tol);

  Tensor grad(dtype, l.sizes, l.strides), gx(dtype, l.sizes, l.strides), gw(dtype, normalised), gb(dtype, normalised);
  grad.fill_random(4);
  std::vector<double> gx_want(x.count()), gw_want(n), gb_want(n);
  for (int64_t i = 0; i < rows; ++i) {
    const double m = mean.at(i), s = rstd.at(i);
    double mg = 0, mgx = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double g = grad.at(i * n + j) * (affine ? weight.at(j) : 1), h = (x.at(i * n + j) - m) * s;
      mg += g / n, mgx += g * h / n;
      gw_want[j] += grad.at(i * n + j) * h, gb_want[j] += grad.at(i * n + j);
    }
    for (int64_t j = 0; j < n; ++j) {
      const double g = grad.at(i * n + j) * (affine ? weight.at(j) : 1), h = (x.at(i * n + j) - m) * s;
      gx_want[i * n + j] = s * (g - mg - h * mgx);
    }
  }
  Attrs back;
  back.integer(FLHAL_ATTR_LAYER_NORM_BACKWARD_N_DIMS, l.n_dims);
  r = run_op(p, FLHAL_OP_LAYER_NORM_BACKWARD, "layer_norm_backward", {&gx, &gw, &gb, &grad, &x, &mean, &rstd, w}, 3, back);
  REQUIRE(r.ran == FLHAL_OK);
  // With n of 1, rstd is 1/sqrt(eps) and the differences are rounding noise times 300.
  if (n > 1) check_near(gx, gx_want, dtype == FLHAL_BF16 ? 3e-2 : 2e-5);
  check_near(gw, gw_want, dtype == FLHAL_BF16 ? 3e-2 : 2e-5);
  check_near(gb, gb_want, dtype == FLHAL_BF16 ? 3e-2 : 2e-5);
  REQUIRE(run_op(p, FLHAL_OP_LAYER_NORM_BACKWARD, "layer_norm_backward", {&gx, &none, &none, &grad, &x, &mean, &rstd, w}, 3, back).ran == FLHAL_OK);
}

TEST_CASE("host normalisations: float64 goes to the portable kernels", "[host_plugin][softmax]") {
  LoadedPlugin p;
  Tensor x(FLHAL_F64, {2, 3}), y(FLHAL_F64, {2, 3});
  RunResult r = run_op(p, FLHAL_OP_SOFTMAX, "softmax", {&y, &x}, 1);
  CHECK(r.created == FLHAL_DECLINED);
  CHECK(r.reason == "native softmax takes float32, float16 and bfloat16");
}
