// conformance/reference/values.h: what the references compute with: numbers in row-major order, without dtypes and layouts.
//
// References are slow functions in double precision, written from the op set's formulas and from nothing of the code under
// test. `magnitude` is the size of the largest intermediate value of an element: rounding errors are relative to it.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>
#include <deque>
#include <array>
#include <string>
#include <vector>

namespace flhal::conformance {

using Sizes = std::vector<int64_t>;
inline int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

struct Values {
  Sizes sizes;
  std::vector<double> v;
  bool given = true;
  std::vector<double> imaginary = {};   // as many as v, or none
  double at(int64_t i) const { return v[static_cast<size_t>(i)]; }
};

// The attributes of a call that differ from their defaults.
class Attributes {
 public:
  Attributes& number(uint32_t key, double v, bool dynamic = false);
  Attributes& integer(uint32_t key, int64_t v);
  Attributes& ints(uint32_t key, int64_t a, int64_t b);
  Attributes& philox(uint32_t key, uint64_t seed, uint64_t offset);
  double number_of(uint32_t key, double otherwise) const;
  int64_t integer_of(uint32_t key, int64_t otherwise) const;
  int64_t int_of(uint32_t key, size_t i, int64_t otherwise) const;    // element i of a pair
  const std::vector<flhal_attr_v1>& list() const { return list_; }

 private:
  const flhal_attr_v1* find(uint32_t key) const;
  std::vector<flhal_attr_v1> list_;
  std::deque<std::array<int64_t, 2>> pairs_;
};

struct Expected {
  std::vector<double> value, magnitude;
  std::vector<double> imaginary = {};   // of complex results: as many as values
  int64_t terms = 1;                 // how many values were added up for one element
  void set(size_t i, double v, double m) { value[i] = v, magnitude[i] = m; }
  explicit Expected(int64_t n) : value(static_cast<size_t>(n)), magnitude(static_cast<size_t>(n)) {}
};

// Index arithmetic: the index of row-major element i, and back; broadcast() takes numpy's rules.
Sizes index_of(int64_t i, const Sizes& sizes);
int64_t element_at(const Sizes& at, const Sizes& sizes);
int64_t broadcast_element(int64_t i, const Sizes& out, const Sizes& in);

// By family; the name is the op's.
bool has_complex_reference(const std::string& op);
Expected complex_pointwise(const std::string& op, const std::vector<Values>& in, const Sizes& out);
Expected complex_sum(const Values& x, const Sizes& out, bool mean);
Expected complex_matmul(const Values& a, const Values& b);   // of two matrices
Expected pointwise(const std::string& op, const std::vector<Values>& in, const Sizes& out, const Attributes&);
Expected reduction(const std::string& op, const Values& x, const Sizes& out, const Attributes&);
Expected cumsum(const Values& x, int64_t dim);
Expected matmul(const Values& a, const Values& b, const Values& c, const Sizes& out, double alpha, double beta);
Expected softmax(const Values& x, int64_t dim, bool logarithm);
Expected softmax_backward(const Values& grad, const Values& y, int64_t dim, bool logarithm);
Expected layer_norm(const Values& x, const Values& weight, const Values& bias, int64_t n_dims, double eps);
Expected batch_norm(const Values& x, const Values& weight, const Values& bias, const Values& mean, const Values& var, double eps);

struct Window { int64_t kernel[2], stride[2], padding[2], dilation[2]; };
Expected conv2d(const Values& x, const Values& w, const Values& bias, const Sizes& out, const Window&, int64_t groups);
Expected conv2d_backward_input(const Values& grad, const Values& w, const Sizes& gx, const Window&, int64_t groups);
Expected conv2d_backward_weight(const Values& grad, const Values& x, const Sizes& gw, const Window&, int64_t groups);
Expected max_pool2d(const Values& x, const Sizes& out, const Window&, Expected* index);
Expected avg_pool2d(const Values& x, const Sizes& out, const Window&, bool count_padding, int64_t divisor);

struct Statistics { Expected mean, rstd; };
Statistics statistics_of(const Values& x, const std::vector<int64_t>& group_of, int64_t groups, double eps);
struct NormGradients { Expected x, weight, bias; };
NormGradients norm_backward(const Values& grad, const Values& x, const Values& mean, const Values& rstd, const Values& weight,
                            const std::vector<int64_t>& group_of, const std::vector<int64_t>& weight_of, int64_t weights, bool fixed);
Expected max_pool2d_backward(const Values& grad, const Values& index, const Sizes& gx);
Expected random_numbers(const std::string& op, int64_t n, uint64_t seed, uint64_t offset, double first, double second, int bits);

Expected index_select(const Values& x, const Values& index, const Sizes& out, int64_t dim);
Expected gather(const Values& x, const Values& index, int64_t dim);
Expected scatter(const Values& before, const Values& index, const Values& src, int64_t dim, bool add);
Expected index_add(const Values& before, const Values& index, const Values& src, int64_t dim);
Expected triangle(const Values& x, int64_t diagonal, bool lower);
Expected cat(const std::vector<Values>& in, const Sizes& out, int64_t dim);

}  // namespace flhal::conformance
