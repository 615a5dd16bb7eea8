// conformance/reference/pointwise.cc: the pointwise family, one function of doubles per op.
#include <flhal/ops.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

struct Result { double value, magnitude; };
using Function = Result (*)(const double* x, const Attributes& a);

Result exact(double v) { return {v, std::fabs(v)}; }
int64_t whole(double v) { return static_cast<int64_t>(v); }
double truth(bool b) { return b ? 1 : 0; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }
// Half to even, whatever the rounding mode is called.
double even(double x) { return std::nearbyint(x); }

// a - b * floor(a / b) and floor(a / b) of the exact quotient, which has a sign and a floor also where b is infinite.
double floor_rest(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  double r = std::fmod(a, b);
  return std::nearbyint((a - r) / b) - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);
}

#define ONE(expression) [](const double* in, const Attributes& a) -> Result { [[maybe_unused]] double x = in[0]; (void)a; return exact(expression); }
#define ONE_OF(expression, size) [](const double* in, const Attributes& a) -> Result { [[maybe_unused]] double x = in[0]; (void)a; return {expression, size}; }
#define TWO(expression) [](const double* in, const Attributes& t) -> Result { [[maybe_unused]] double a = in[0], b = in[1]; (void)t; return exact(expression); }
#define TWO_OF(expression, size) [](const double* in, const Attributes& t) -> Result { [[maybe_unused]] double a = in[0], b = in[1]; (void)t; return {expression, size}; }

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"neg", ONE(-x)}, {"abs", ONE(std::fabs(x))}, {"sign", ONE(x > 0 ? 1 : x < 0 ? -1 : 0)}, {"exp", ONE(std::exp(x))},
      {"exp2", ONE(std::exp2(x))}, {"expm1", ONE(std::expm1(x))}, {"log", ONE(std::log(x))}, {"log2", ONE(std::log2(x))},
      {"log10", ONE(std::log10(x))}, {"log1p", ONE(std::log1p(x))}, {"sqrt", ONE(std::sqrt(x))}, {"rsqrt", ONE(1 / std::sqrt(x))},
      {"reciprocal", ONE(1 / x)}, {"square", ONE(x * x)}, {"sin", ONE_OF(std::sin(x), 1)}, {"cos", ONE_OF(std::cos(x), 1)},
      {"tan", ONE(std::tan(x))}, {"asin", ONE(std::asin(x))}, {"acos", ONE_OF(std::acos(x), 1)}, {"atan", ONE(std::atan(x))},
      {"sinh", ONE(std::sinh(x))}, {"cosh", ONE(std::cosh(x))}, {"tanh", ONE(std::tanh(x))}, {"sigmoid", ONE(sigmoid(x))},
      {"relu", ONE(x > 0 || std::isnan(x) ? x : 0)}, {"silu", ONE(x * sigmoid(x))}, {"erf", ONE(std::erf(x))},
      {"erfc", ONE_OF(std::erfc(x), 1)}, {"floor", ONE(std::floor(x))}, {"ceil", ONE(std::ceil(x))}, {"round", ONE(even(x))},
      {"trunc", ONE(std::trunc(x))}, {"frac", ONE(x - std::trunc(x))}, {"isnan", ONE(truth(std::isnan(x)))},
      {"isinf", ONE(truth(std::isinf(x)))}, {"isfinite", ONE(truth(std::isfinite(x)))}, {"logical_not", ONE(truth(x == 0))},
      {"gelu", ONE_OF(a.integer_of(FLHAL_ATTR_GELU_APPROXIMATE, 0) ? gelu_tanh(x) : x * phi(x), std::fabs(x))},
      {"softplus", [](const double* in, const Attributes& a) -> Result {
         double beta = a.number_of(FLHAL_ATTR_SOFTPLUS_BETA, 1), x = in[0];
         return {beta * x > a.number_of(FLHAL_ATTR_SOFTPLUS_THRESHOLD, 20) ? x : std::log1p(std::exp(beta * x)) / beta, std::max(1.0, std::fabs(x))};
       }},
      {"leaky_relu", ONE(x > 0 ? x : a.number_of(FLHAL_ATTR_LEAKY_RELU_SLOPE, 0.01) * x)},
      {"hardtanh", ONE(std::isnan(x) ? x : std::min(std::max(x, a.number_of(FLHAL_ATTR_HARDTANH_MIN, -1)), a.number_of(FLHAL_ATTR_HARDTANH_MAX, 1)))},
      {"elu", ONE(x > 0 ? a.number_of(FLHAL_ATTR_ELU_SCALE, 1) * x
                        : a.number_of(FLHAL_ATTR_ELU_SCALE, 1) * a.number_of(FLHAL_ATTR_ELU_ALPHA, 1) * std::expm1(a.number_of(FLHAL_ATTR_ELU_INPUT_SCALE, 1) * x))},

      {"add", TWO_OF(a + t.number_of(FLHAL_ATTR_ADD_ALPHA, 1) * b, std::fabs(a) + std::fabs(t.number_of(FLHAL_ATTR_ADD_ALPHA, 1) * b))},
      {"sub", TWO_OF(a - t.number_of(FLHAL_ATTR_SUB_ALPHA, 1) * b, std::fabs(a) + std::fabs(t.number_of(FLHAL_ATTR_SUB_ALPHA, 1) * b))},
      {"mul", TWO(a * b)}, {"div", TWO(a / b)}, {"div_floor", TWO(floor_quotient(a, b))}, {"div_trunc", TWO(std::trunc(a / b))},
      {"remainder", TWO_OF(floor_rest(a, b), std::fabs(a))}, {"fmod", TWO_OF(std::fmod(a, b), std::fabs(a))}, {"pow", TWO(std::pow(a, b))},
      {"maximum", TWO(larger(a, b))}, {"minimum", TWO(smaller(a, b))}, {"atan2", TWO(std::atan2(a, b))}, {"eq", TWO(truth(a == b))},
      {"ne", TWO(truth(a != b))}, {"lt", TWO(truth(a < b))}, {"le", TWO(truth(a <= b))}, {"gt", TWO(truth(a > b))}, {"ge", TWO(truth(a >= b))},
      {"logical_and", TWO(truth(a != 0 && b != 0))}, {"logical_or", TWO(truth(a != 0 || b != 0))}, {"logical_xor", TWO(truth((a != 0) != (b != 0)))},
      {"bitwise_and", TWO(static_cast<double>(whole(a) & whole(b)))}, {"bitwise_or", TWO(static_cast<double>(whole(a) | whole(b)))},
      {"bitwise_xor", TWO(static_cast<double>(whole(a) ^ whole(b)))}, {"shift_left", TWO(static_cast<double>(whole(a) << whole(b)))},
      {"shift_right", TWO(static_cast<double>(whole(a) >> whole(b)))},

      {"relu_backward", TWO(b <= t.number_of(FLHAL_ATTR_RELU_BACKWARD_THRESHOLD, 0) ? 0 : a)},
      {"tanh_backward", TWO_OF(a * (1 - b * b), std::fabs(a) * (1 + b * b))}, {"sigmoid_backward", TWO_OF(a * (1 - b) * b, std::fabs(a * b) * (1 + std::fabs(b)))},
      {"gelu_backward", [](const double* in, const Attributes& t) -> Result {
         double g = in[0], x = in[1], slope = phi(x) + x * density(x);
         if (t.integer_of(FLHAL_ATTR_GELU_BACKWARD_APPROXIMATE, 0)) {
           double k = std::sqrt(2 / M_PI), u = std::tanh(k * (x + 0.044715 * x * x * x));
           slope = 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * k * (1 + 3 * 0.044715 * x * x);
         }
         return {g * slope, std::fabs(g) * (1 + std::fabs(x))};
       }},
      {"silu_backward", TWO_OF(a * sigmoid(b) * (1 + b * (1 - sigmoid(b))), std::fabs(a) * (1 + std::fabs(b)))},

      {"where", [](const double* in, const Attributes&) { return exact(in[0] != 0 ? in[1] : in[2]); }},
      {"lerp", [](const double* in, const Attributes&) -> Result {
         double a = in[0], b = in[1], w = in[2];
         return {std::fabs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w), std::fabs(in[0]) + std::fabs(in[1]) + std::fabs(in[2]) * (std::fabs(in[0]) + std::fabs(in[1]))};
       }},
      {"addcmul", [](const double* in, const Attributes& a) -> Result {
         double t = a.number_of(FLHAL_ATTR_ADDCMUL_VALUE, 1) * in[1] * in[2];
         return {in[0] + t, std::fabs(in[0]) + std::fabs(t)};
       }},
      {"addcdiv", [](const double* in, const Attributes& a) -> Result {
         double t = a.number_of(FLHAL_ATTR_ADDCDIV_VALUE, 1) * in[1] / in[2];
         return {in[0] + t, std::fabs(in[0]) + std::fabs(t)};
       }},
      {"masked_fill", [](const double* in, const Attributes&) { return exact(in[1] != 0 ? in[2] : in[0]); }},
  };
  return all;
}

}  // namespace

Expected pointwise(const std::string& op, const std::vector<Values>& in, const Sizes& out, const Attributes& attributes) {
  Expected e(count_of(out));
  for (int64_t i = 0; i < count_of(out); ++i) {
    double x[4] = {0, 0, 0, 0};
    for (size_t k = 0; k < in.size(); ++k)
      if (in[k].given) x[k] = in[k].at(broadcast_element(i, out, in[k].sizes));
    Result r;
    if (op == "clamp") {                       // either bound may be absent
      double v = x[0];
      if (in[1].given) v = larger(v, x[1]);
      if (in[2].given) v = smaller(v, x[2]);
      r = exact(v);
    } else if (op == "bitwise_not") {          // the case says what true is: for bool the value is its own dtype's
      r = exact(static_cast<double>(~whole(x[0])));
    } else {
      r = functions().at(op)(x, attributes);
    }
    e.set(static_cast<size_t>(i), r.value, r.magnitude);
  }
  return e;
}

}  // namespace flhal::conformance
