// conformance/reference/complex.cc: complex arithmetic in double precision. Errors are relative to the modulus of the largest
// intermediate value: an implementation may compute real and imaginary parts by products of the other.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <map>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

using Complex = std::complex<double>;
struct Result { Complex value; double magnitude; };

Result of(Complex v) { return {v, std::abs(v)}; }
Complex element(const Values& x, int64_t i) {
  auto k = static_cast<size_t>(i);
  return {x.v[k], k < x.imaginary.size() ? x.imaginary[k] : 0};
}

const std::map<std::string, std::function<Result(const Complex*)>>& functions() {
  static const std::map<std::string, std::function<Result(const Complex*)>> all = {
      {"neg", [](const Complex* x) { return of(-x[0]); }},
      {"square", [](const Complex* x) { return Result{x[0] * x[0], std::norm(x[0])}; }},
      {"reciprocal", [](const Complex* x) { return of(1.0 / x[0]); }},
      {"exp", [](const Complex* x) { return of(std::exp(x[0])); }},
      {"log", [](const Complex* x) { return Result{std::log(x[0]), std::max(1.0, std::abs(std::log(x[0])))}; }},
      {"sqrt", [](const Complex* x) { return of(std::sqrt(x[0])); }},
      {"sin", [](const Complex* x) { return Result{std::sin(x[0]), std::cosh(x[0].imag())}; }},
      {"cos", [](const Complex* x) { return Result{std::cos(x[0]), std::cosh(x[0].imag())}; }},
      {"add", [](const Complex* x) { return Result{x[0] + x[1], std::abs(x[0]) + std::abs(x[1])}; }},
      {"sub", [](const Complex* x) { return Result{x[0] - x[1], std::abs(x[0]) + std::abs(x[1])}; }},
      {"mul", [](const Complex* x) { return Result{x[0] * x[1], std::abs(x[0]) * std::abs(x[1])}; }},
      {"div", [](const Complex* x) { return of(x[0] / x[1]); }},
  };
  return all;
}

void set(Expected& e, size_t i, const Result& r) {
  e.imaginary.resize(e.value.size());
  e.set(i, r.value.real(), r.magnitude);
  e.imaginary[i] = r.value.imag();
}

}  // namespace

bool has_complex_reference(const std::string& op) { return functions().count(op) != 0; }

Expected complex_pointwise(const std::string& op, const std::vector<Values>& in, const Sizes& out) {
  const auto& function = functions().at(op);
  Expected e(count_of(out));
  for (int64_t i = 0; i < count_of(out); ++i) {
    Complex x[2];
    for (size_t k = 0; k < in.size(); ++k) x[k] = element(in[k], broadcast_element(i, out, in[k].sizes));
    set(e, static_cast<size_t>(i), function(x));
  }
  return e;
}

Expected complex_sum(const Values& x, const Sizes& out, bool mean) {
  Expected e(count_of(out));
  std::vector<Result> sums(e.value.size());
  for (int64_t i = 0; i < count_of(x.sizes); ++i) {
    Result& s = sums[static_cast<size_t>(broadcast_element(i, x.sizes, out))];
    s.value += element(x, i);
    s.magnitude += std::abs(element(x, i));
  }
  e.terms = count_of(x.sizes) / std::max<int64_t>(count_of(out), 1);
  const double by = mean ? static_cast<double>(e.terms) : 1;
  for (size_t i = 0; i < sums.size(); ++i) set(e, i, {sums[i].value / by, sums[i].magnitude / by});
  return e;
}

Expected complex_matmul(const Values& a, const Values& b) {
  const int64_t m = a.sizes[0], k = a.sizes[1], n = b.sizes[1];
  Expected e(m * n);
  e.terms = k;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Result sum{};
      for (int64_t l = 0; l < k; ++l) {
        const Complex product = element(a, i * k + l) * element(b, l * n + j);
        sum.value += product, sum.magnitude += std::abs(product);
      }
      set(e, static_cast<size_t>(i * n + j), sum);
    }
  return e;
}

}  // namespace flhal::conformance
