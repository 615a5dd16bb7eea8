// tests/kernels/pointwise_test.cc: pointwise kernels against double-precision functions, in every layout and dtype.
#include <functional>

#include "run_plan.h"

namespace flhal::test {
namespace {

struct Unary { uint32_t op; const char* name; std::function<double(double)> f; double low, high, ulps; };
const std::vector<Unary>& unaries() {
  static const std::vector<Unary> rows = {
      {FLHAL_OP_NEG, "neg", [](double x) { return -x; }, -9, 9, 0},
      {FLHAL_OP_ABS, "abs", [](double x) { return std::fabs(x); }, -9, 9, 0},
      {FLHAL_OP_SIGN, "sign", [](double x) { return std::isnan(x) ? 0.0 : (x > 0) - (x < 0); }, -2, 2, 0},
      {FLHAL_OP_EXP, "exp", [](double x) { return std::exp(x); }, -110, 95, 3},
      {FLHAL_OP_EXP2, "exp2", [](double x) { return std::exp2(x); }, -20, 20, 3},
      {FLHAL_OP_EXPM1, "expm1", [](double x) { return std::expm1(x); }, -3, 9, 3},
      {FLHAL_OP_LOG, "log", [](double x) { return std::log(x); }, -1, 90, 3},
      {FLHAL_OP_LOG2, "log2", [](double x) { return std::log2(x); }, -1, 90, 3},
      {FLHAL_OP_LOG10, "log10", [](double x) { return std::log10(x); }, -1, 90, 3},
      {FLHAL_OP_LOG1P, "log1p", [](double x) { return std::log1p(x); }, -2, 9, 3},
      {FLHAL_OP_SQRT, "sqrt", [](double x) { return std::sqrt(x); }, -1, 90, 1},
      {FLHAL_OP_RSQRT, "rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01, 90, 3},
      {FLHAL_OP_RECIPROCAL, "reciprocal", [](double x) { return 1 / x; }, 0.1, 9, 1},
      {FLHAL_OP_SQUARE, "square", [](double x) { return x * x; }, -9, 9, 1},
      {FLHAL_OP_SIN, "sin", [](double x) { return std::sin(x); }, -9, 9, 3},
      {FLHAL_OP_COS, "cos", [](double x) { return std::cos(x); }, -9, 9, 3},
      {FLHAL_OP_TAN, "tan", [](double x) { return std::tan(x); }, -1.4, 1.4, 4},
      {FLHAL_OP_ASIN, "asin", [](double x) { return std::asin(x); }, -1.1, 1.1, 3},
      {FLHAL_OP_ACOS, "acos", [](double x) { return std::acos(x); }, -1.1, 1.1, 3},
      {FLHAL_OP_ATAN, "atan", [](double x) { return std::atan(x); }, -9, 9, 3},
      {FLHAL_OP_SINH, "sinh", [](double x) { return std::sinh(x); }, -4, 4, 4},
      {FLHAL_OP_COSH, "cosh", [](double x) { return std::cosh(x); }, -4, 4, 4},
      {FLHAL_OP_TANH, "tanh", [](double x) { return std::tanh(x); }, -12, 12, 4},
      {FLHAL_OP_SIGMOID, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 20, 5},
      {FLHAL_OP_RELU, "relu", [](double x) { return x < 0 ? 0 : x; }, -9, 9, 0},
      {FLHAL_OP_SILU, "silu", [](double x) { return x / (1 + std::exp(-x)); }, -20, 20, 6},
      {FLHAL_OP_ERF, "erf", [](double x) { return std::erf(x); }, -5, 5, 4},
      {FLHAL_OP_ERFC, "erfc", [](double x) { return std::erfc(x); }, -3, 3, 4},
      {FLHAL_OP_FLOOR, "floor", [](double x) { return std::floor(x); }, -9, 9, 0},
      {FLHAL_OP_CEIL, "ceil", [](double x) { return std::ceil(x); }, -9, 9, 0},
      {FLHAL_OP_ROUND, "round", [](double x) { return std::nearbyint(x); }, -9, 9, 0},
      {FLHAL_OP_TRUNC, "trunc", [](double x) { return std::trunc(x); }, -9, 9, 0},
      {FLHAL_OP_FRAC, "frac", [](double x) { return x - std::trunc(x); }, -9, 9, 0},
      {FLHAL_OP_GELU, "gelu", [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752)); }, -4, 4, 40},
  };
  return rows;
}

TEST_CASE("pointwise: every float function is right to a few units in the last place, in every layout and float dtype",
          "[kernels][pointwise]") {
  for (const Unary& row : unaries())
    for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16})
      for (Layout layout : kLayouts) {
        if (left_out(7)) continue;
        Array x = Array::values(dtype, {5, 7, 11}, series(385, row.op, row.low, row.high), layout);
        x.set(3, NAN);
        x.set(4, INFINITY);
        x.set(5, -INFINITY);
        x.set(6, 0);
        Array y(dtype, {5, 7, 11}, layout == Layout::kDense ? Layout::kGappy : Layout::kDense);
        run_op(row.op, {&y}, {&x});
        std::vector<double> want;
        for (double v : x.all()) {
          double w = row.f(v);
          unsigned char rounded[8];
          write_element(dtype, rounded, w);
          want.push_back(row.ulps == 0 || std::isnan(w) || std::isinf(read_element(dtype, rounded)) ? read_element(dtype, rounded) : w);
        }
        // gelu of a very negative x cancels: its absolute error is that of 1 + erf.
        double absolute = dtype == FLHAL_F64 ? 1e-300 : dtype == FLHAL_F16 ? 6e-8 : 1e-38;
        if (row.op == FLHAL_OP_GELU) absolute += 4 * 6e-8;
        if (row.op == FLHAL_OP_GELU && dtype == FLHAL_F64) absolute = 1e-15;
        double relative = row.ulps * (dtype == FLHAL_F64 ? 2 * epsilon_of(FLHAL_F64) : 2 * epsilon_of(FLHAL_F32)) +
                          (dtype == FLHAL_F16 || dtype == FLHAL_BF16 ? epsilon_of(dtype) * 1.001 : 0);
        check_close(y.all(), want, relative, absolute, std::string(row.name) + " " + dtype_name(dtype) + " " + layout_name(layout));
      }
}

// Reference: erfc, which keeps the digits of the tail, in double precision.
TEST_CASE("pointwise: gelu keeps the digits of its tail, and ends in zero and NaN as x * Phi(x)", "[kernels][pointwise]") {
  std::vector<double> values;
  for (int i = -6000, step = left_out(1000000) ? 30 : 1; i <= 6000; i += step) values.push_back(i / 1000.0);
  const auto n = static_cast<int64_t>(values.size());
  Array x = Array::values(FLHAL_F32, {n}, values), y(FLHAL_F32, {n});
  run_op(FLHAL_OP_GELU, {&y}, {&x});
  double below = 0, near = 0, above = 0;   // the largest absolute error below 0, relative within 2, relative above 0
  for (int64_t i = 0; i < n; ++i) {
    const double v = x.get(i), want = v * 0.5 * std::erfc(-v * 0.70710678118654752), off = std::fabs(y.get(i) - want);
    if (v < 0) below = std::max(below, off);
    if (v != 0 && std::fabs(v) < 2) near = std::max(near, off / std::fabs(want));
    if (v > 0) above = std::max(above, off / want);
  }
  CHECK(below < 1e-7);
  CHECK(near < 8e-7);
  CHECK(above < 5e-7);
  Array ends = Array::values(FLHAL_F32, {6}, {-INFINITY, -3e38, -7, -0.0, 3e38, INFINITY}), out(FLHAL_F32, {6});
  run_op(FLHAL_OP_GELU, {&out}, {&ends});
  check_close(out.all(), {NAN, 0, 0, 0, 3e38, INFINITY}, 1e-7, 0, "gelu at the ends");
}

struct Binary { uint32_t op; const char* name; std::function<double(double, double)> f; };
const std::vector<Binary>& exact_binaries() {   // on small integers every dtype gives the same exact answer
  static const std::vector<Binary> rows = {
      {FLHAL_OP_ADD, "add", [](double a, double b) { return a + b; }},
      {FLHAL_OP_SUB, "sub", [](double a, double b) { return a - b; }},
      {FLHAL_OP_MUL, "mul", [](double a, double b) { return a * b; }},
      {FLHAL_OP_DIV_FLOOR, "div_floor", [](double a, double b) { return std::floor(a / b); }},
      {FLHAL_OP_DIV_TRUNC, "div_trunc", [](double a, double b) { return std::trunc(a / b); }},
      {FLHAL_OP_REMAINDER, "remainder", [](double a, double b) { return a - b * std::floor(a / b); }},
      {FLHAL_OP_FMOD, "fmod", [](double a, double b) { return a - b * std::trunc(a / b); }},
      {FLHAL_OP_MAXIMUM, "maximum", [](double a, double b) { return std::max(a, b); }},
      {FLHAL_OP_MINIMUM, "minimum", [](double a, double b) { return std::min(a, b); }},
      {FLHAL_OP_EQ, "eq", [](double a, double b) { return a == b; }},
      {FLHAL_OP_NE, "ne", [](double a, double b) { return a != b; }},
      {FLHAL_OP_LT, "lt", [](double a, double b) { return a < b; }},
      {FLHAL_OP_LE, "le", [](double a, double b) { return a <= b; }},
      {FLHAL_OP_GT, "gt", [](double a, double b) { return a > b; }},
      {FLHAL_OP_GE, "ge", [](double a, double b) { return a >= b; }},
      {FLHAL_OP_LOGICAL_AND, "logical_and", [](double a, double b) { return a && b; }},
      {FLHAL_OP_LOGICAL_OR, "logical_or", [](double a, double b) { return a || b; }},
      {FLHAL_OP_LOGICAL_XOR, "logical_xor", [](double a, double b) { return !a != !b; }},
  };
  return rows;
}
bool is_test(uint32_t op) { return op >= FLHAL_OP_EQ && op <= FLHAL_OP_LOGICAL_XOR; }

std::vector<double> small_integers(int64_t n, uint64_t seed, bool is_signed, bool no_zero) {
  std::vector<double> v = series(n, seed, is_signed ? -6 : 0, 7);
  for (double& x : v) {
    x = std::floor(x);
    if (no_zero && x == 0) x = 3;
  }
  return v;
}

TEST_CASE("pointwise: binary operators are exact on small integers in every dtype, layout and broadcast", "[kernels][pointwise]") {
  const flhal_dtype dtypes[] = {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16, FLHAL_I64, FLHAL_I32, FLHAL_I16, FLHAL_I8, FLHAL_U8};
  for (const Binary& row : exact_binaries())
    for (flhal_dtype dtype : dtypes)
      for (Layout layout : kLayouts)
        for (int shape = 0; shape < 5; ++shape) {
          if (left_out(23)) continue;
          bool is_signed = dtype != FLHAL_U8;
          if (!is_signed && (row.op == FLHAL_OP_SUB)) continue;
          const Sizes full = {3, 4, 5};
          const Sizes second[] = {{3, 4, 5}, {5}, {4, 1}, {1, 1, 1}, {}};
          Array a = Array::values(dtype, full, small_integers(60, row.op + 1, is_signed, false), layout);
          Array b = Array::values(dtype, second[shape], small_integers(60, row.op + 2, is_signed, true), Layout::kDense);
          if (shape == 4) b = Array::host_scalar(dtype, 3);
          Array out(is_test(row.op) ? FLHAL_BOOL : dtype, full, layout == Layout::kTransposed ? Layout::kDense : layout);
          run_op(row.op, {&out}, {&a, &b}, dtype);
          Array wide = b.expanded(full);
          std::vector<double> want;
          for (int64_t i = 0; i < 60; ++i) want.push_back(row.f(a.get(i), wide.get(i)));
          check_close(out.all(), want, 0, 0, std::string(row.name) + " " + dtype_name(dtype) + " " + layout_name(layout) + " shape " + std::to_string(shape));
        }
}

TEST_CASE("pointwise: a transposed operand of 2x3x4x5 and a bias row are walked right at every size around a block",
          "[kernels][pointwise]") {
  for (int64_t n : {1, 2, 63, 64, 95, 96, 97, 511, 1023, 1024, 1025, 3000}) {
    Array a = Array::values(FLHAL_F32, {7, n}, series(7 * n, 1, -1, 1), Layout::kTransposed);
    Array b = Array::values(FLHAL_F32, {n}, series(n, 2, -1, 1));
    Array out(FLHAL_F32, {7, n});
    run_op(FLHAL_OP_ADD, {&out}, {&a, &b});
    for (int64_t i = 0; i < 7 * n; ++i)
      if (out.get(i) != static_cast<float>(a.get(i)) + static_cast<float>(b.get(i % n))) FAIL("n " << n << " element " << i);
  }
}

TEST_CASE("pointwise: many groups in any order give what one group gives", "[kernels][large][pointwise]") {
  for (Layout layout : kLayouts) {
    Array a = Array::values(FLHAL_F32, {300, 401}, series(300 * 401, 3, -1, 1), layout);
    Array b = Array::values(FLHAL_F16, {300, 1}, series(300, 4, -1, 1));
    Array out(FLHAL_F32, {300, 401});
    Outcome o = run_op(FLHAL_OP_MUL, {&out}, {&a, &b}, FLHAL_F32);
    REQUIRE(o.groups > 3);
    for (int64_t i = 0; i < 300 * 401; ++i)
      if (out.get(i) != static_cast<float>(a.get(i)) * static_cast<float>(b.get(i / 401))) FAIL(layout_name(layout) << " element " << i);
  }
}

TEST_CASE("pointwise: operands of other dtypes are converted on load and the result on store", "[kernels][pointwise]") {
  Array a = Array::values(FLHAL_I32, {100}, small_integers(100, 1, true, false));
  Array b = Array::values(FLHAL_F16, {100}, series(100, 2, -2, 2));
  Array out(FLHAL_F64, {100});
  run_op(FLHAL_OP_ADD, {&out}, {&a, &b}, FLHAL_F32, {Attr::number(FLHAL_ATTR_ADD_ALPHA, 2)});
  for (int64_t i = 0; i < 100; ++i) REQUIRE(out.get(i) == static_cast<float>(a.get(i)) + 2 * static_cast<float>(b.get(i)));
}

TEST_CASE("pointwise: NaN wins in maximum, minimum and clamp, and loses every comparison but ne", "[kernels][pointwise]") {
  Array a = Array::values(FLHAL_F32, {4}, {NAN, 1, NAN, 2});
  Array b = Array::values(FLHAL_F32, {4}, {1, NAN, NAN, 3});
  for (uint32_t op : {FLHAL_OP_MAXIMUM, FLHAL_OP_MINIMUM}) {
    Array out(FLHAL_F32, {4});
    run_op(op, {&out}, {&a, &b});
    for (int i = 0; i < 3; ++i) REQUIRE(std::isnan(out.get(i)));
  }
  Array low = Array::host_scalar(FLHAL_F64, -1), high = Array::host_scalar(FLHAL_F64, 1.5), out(FLHAL_F32, {4});
  run_op(FLHAL_OP_CLAMP, {&out}, {&a, &low, &high}, FLHAL_F32);
  check_close(out.all(), {NAN, 1, NAN, 1.5}, 0, 0, "clamp");
  Array none = Array::none();
  run_op(FLHAL_OP_CLAMP, {&out}, {&a, &none, &high}, FLHAL_F32);
  check_close(out.all(), {NAN, 1, NAN, 1.5}, 0, 0, "clamp max");
  Array flag(FLHAL_BOOL, {4});
  run_op(FLHAL_OP_GE, {&flag}, {&a, &b});
  check_close(flag.all(), {0, 0, 0, 0}, 0, 0, "ge");
  run_op(FLHAL_OP_NE, {&flag}, {&a, &b});
  check_close(flag.all(), {1, 1, 1, 1}, 0, 0, "ne");
}

TEST_CASE("pointwise: an integer division by zero is a fault and writes no trap", "[kernels][pointwise]") {
  for (uint32_t op : {FLHAL_OP_DIV_FLOOR, FLHAL_OP_DIV_TRUNC, FLHAL_OP_REMAINDER, FLHAL_OP_FMOD})
    for (flhal_dtype dtype : {FLHAL_I64, FLHAL_I32, FLHAL_I8}) {
      Array a = Array::values(dtype, {3}, {1, -128, 3}), b = Array::values(dtype, {3}, {1, -1, 0}), out(dtype, {3});
      Outcome o = try_op(op, {&out}, {&a, &b});
      REQUIRE(o.planned);
      REQUIRE(kernels::kernel_error_text(o.error) == "integer division by zero");
    }
}

TEST_CASE("pointwise: integers wrap, shift and raise to powers as the rules say", "[kernels][pointwise]") {
  Array a = Array::values(FLHAL_I8, {4}, {127, -128, 100, 5}), b = Array::values(FLHAL_I8, {4}, {1, -1, 100, 3}), out(FLHAL_I8, {4});
  run_op(FLHAL_OP_ADD, {&out}, {&a, &b});
  check_close(out.all(), {-128, 127, -56, 8}, 0, 0, "add");
  Array c = Array::values(FLHAL_I32, {5}, {2, -1, 1, 3, -2}), e = Array::values(FLHAL_I32, {5}, {-1, -3, -5, 4, 3}), r(FLHAL_I32, {5});
  run_op(FLHAL_OP_POW, {&r}, {&c, &e});
  check_close(r.all(), {0, -1, 1, 81, -8}, 0, 0, "pow");
  Array s = Array::values(FLHAL_I32, {5}, {1, 31, 32, -1, 4});
  Array v = Array::values(FLHAL_I32, {5}, {3, 1, 7, 7, -16});
  run_op(FLHAL_OP_SHIFT_LEFT, {&r}, {&v, &s});
  check_close(r.all(), {6, -2147483648.0, 0, 0, -256}, 0, 0, "shift_left");
  run_op(FLHAL_OP_SHIFT_RIGHT, {&r}, {&v, &s});
  check_close(r.all(), {1, 0, 0, 0, -1}, 0, 0, "shift_right");
}

TEST_CASE("pointwise: bool operands follow logic, not arithmetic", "[kernels][pointwise]") {
  Array a = Array::values(FLHAL_BOOL, {4}, {0, 0, 1, 1}), b = Array::values(FLHAL_BOOL, {4}, {0, 1, 0, 1}), out(FLHAL_BOOL, {4});
  struct { uint32_t op; std::vector<double> want; } rows[] = {
      {FLHAL_OP_BITWISE_AND, {0, 0, 0, 1}}, {FLHAL_OP_BITWISE_OR, {0, 1, 1, 1}}, {FLHAL_OP_BITWISE_XOR, {0, 1, 1, 0}},
      {FLHAL_OP_ADD, {0, 1, 1, 1}}, {FLHAL_OP_MUL, {0, 0, 0, 1}}, {FLHAL_OP_MAXIMUM, {0, 1, 1, 1}},
      {FLHAL_OP_LT, {0, 1, 0, 0}}, {FLHAL_OP_EQ, {1, 0, 0, 1}}};
  for (auto& row : rows) {
    run_op(row.op, {&out}, {&a, &b}, FLHAL_BOOL);
    check_close(out.all(), row.want, 0, 0, "op " + std::to_string(row.op));
  }
  run_op(FLHAL_OP_BITWISE_NOT, {&out}, {&a}, FLHAL_BOOL);
  check_close(out.all(), {1, 1, 0, 0}, 0, 0, "bitwise_not");
}

TEST_CASE("pointwise: where and masked_fill take a bool of any layout", "[kernels][pointwise]") {
  for (flhal_dtype dtype : {FLHAL_F32, FLHAL_F16, FLHAL_I64, FLHAL_I8, FLHAL_BOOL, FLHAL_C64})
    for (Layout layout : kLayouts) {
      Array m = Array::values(FLHAL_BOOL, {6, 1}, {1, 0, 1, 1, 0, 0}, layout);
      Array a = Array::values(dtype, {6, 9}, small_integers(54, 1, false, false), layout), b = Array::host_scalar(FLHAL_I64, 1);
      Array out(dtype, {6, 9});
      run_op(FLHAL_OP_WHERE, {&out}, {&m, &a, &b}, dtype);
      for (int64_t i = 0; i < 54; ++i) REQUIRE(out.get(i) == (m.get(i / 9) ? a.get(i) : 1));
      run_op(FLHAL_OP_MASKED_FILL, {&a}, {&a, &m, &b}, dtype);
      for (int64_t i = 0; i < 54; ++i) if (m.get(i / 9)) REQUIRE(a.get(i) == 1);
    }
}

TEST_CASE("pointwise: empty calls do nothing", "[kernels][pointwise]") {
  Array a(FLHAL_F32, {0, 5}), b(FLHAL_F32, {5}), out(FLHAL_F32, {0, 5});
  REQUIRE(run_op(FLHAL_OP_ADD, {&out}, {&a, &b}).groups == 1);
}

TEST_CASE("pointwise: backward rows agree with difference quotients", "[kernels][pointwise]") {
  struct { uint32_t op; std::function<double(double)> f; bool saves_y; } rows[] = {
      {FLHAL_OP_GELU_BACKWARD, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, false},
      {FLHAL_OP_SILU_BACKWARD, [](double x) { return x / (1 + std::exp(-x)); }, false},
      {FLHAL_OP_TANH_BACKWARD, [](double x) { return std::tanh(x); }, true},
      {FLHAL_OP_SIGMOID_BACKWARD, [](double x) { return 1 / (1 + std::exp(-x)); }, true}};
  for (auto& row : rows) {
    std::vector<double> xs = series(64, row.op, -3, 3), saved, want;
    for (double x : xs) {
      saved.push_back(row.saves_y ? row.f(x) : x);
      want.push_back(2 * (row.f(x + 1e-5) - row.f(x - 1e-5)) / 2e-5);
    }
    Array g = Array::values(FLHAL_F32, {64}, {2}), s = Array::values(FLHAL_F32, {64}, saved), out(FLHAL_F32, {64});
    run_op(row.op, {&out}, {&g, &s});
    check_close(out.all(), want, 2e-6, 2e-6, "op " + std::to_string(row.op));
  }
  std::vector<double> xs = series(64, 9, -3, 3), want;
  auto f = [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); };
  for (double x : xs) want.push_back((f(x + 1e-5) - f(x - 1e-5)) / 2e-5);
  Array g = Array::values(FLHAL_F64, {64}, {1}), s = Array::values(FLHAL_F64, {64}, xs), out(FLHAL_F64, {64});
  run_op(FLHAL_OP_GELU_BACKWARD, {&out}, {&g, &s}, 0, {Attr::integer(FLHAL_ATTR_GELU_BACKWARD_APPROXIMATE, 1)});
  check_close(out.all(), want, 1e-8, 1e-8, "gelu tanh backward");
}

}  // namespace
}  // namespace flhal::test
