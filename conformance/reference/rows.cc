// conformance/reference/rows.cc: reductions, running sums, softmax and the norms.
#include <flhal/ops.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

// The elements of x that reduce into each element of `out` (x's rank, 1 where reduced).
std::vector<std::vector<int64_t>> rows_into(const Sizes& x, const Sizes& out) {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(count_of(out)));
  for (int64_t i = 0; i < count_of(x); ++i) rows[static_cast<size_t>(broadcast_element(i, x, out))].push_back(i);
  return rows;
}

Sizes without(const Sizes& sizes, int64_t dim) {
  Sizes s = sizes;
  s[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(s.size()) : dim)] = 1;
  return s;
}

}  // namespace

Expected reduction(const std::string& op, const Values& x, const Sizes& out, const Attributes& attributes) {
  Expected e(count_of(out));
  auto rows = rows_into(x.sizes, out);
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    double n = static_cast<double>(row.size()), sum = 0, size = 0, product = 1, squares = 0;
    bool some = false, every = true;
    for (int64_t i : row) {
      double v = x.at(i);
      sum += v, size += std::fabs(v), product *= v, squares += v * v;
      some |= v != 0, every &= v != 0;
    }
    e.terms = std::max<int64_t>(e.terms, static_cast<int64_t>(row.size()));
    auto best = [&](bool largest) {
      int64_t at = 0;
      for (size_t k = 1; k < row.size(); ++k) {
        double now = x.at(row[k]), old = x.at(row[static_cast<size_t>(at)]);
        if (std::isnan(old)) break;
        if (std::isnan(now) || (largest ? now > old : now < old)) at = static_cast<int64_t>(k);
      }
      return at;
    };
    auto value_at = [&](int64_t k) { return x.at(row[static_cast<size_t>(k)]); };
    if (op == "sum") e.set(r, sum, size);
    else if (op == "mean") e.set(r, sum / n, size / n);
    else if (op == "prod") e.set(r, product, std::fabs(product));
    else if (op == "amax") e.set(r, value_at(best(true)), 0);
    else if (op == "amin") e.set(r, value_at(best(false)), 0);
    else if (op == "any") e.set(r, some, 1);
    else if (op == "all") e.set(r, every, 1);
    else if (op == "norm2") e.set(r, std::sqrt(squares), std::sqrt(squares));
    else if (op == "argmax") e.set(r, static_cast<double>(best(true)), 0);
    else if (op == "argmin") e.set(r, static_cast<double>(best(false)), 0);
    else if (op == "var") {
      double mean = sum / n, v = 0;
      for (int64_t i : row) v += (x.at(i) - mean) * (x.at(i) - mean);
      double divisor = std::max(0.0, n - attributes.number_of(FLHAL_ATTR_VAR_CORRECTION, 1));
      e.set(r, v / divisor, (v + mean * mean) / divisor);
    }
  }
  return e;
}

Expected cumsum(const Values& x, int64_t dim) {
  Expected e(count_of(x.sizes));
  for (const auto& row : rows_into(x.sizes, without(x.sizes, dim))) {
    double sum = 0, size = 0;
    for (int64_t i : row) {
      sum += x.at(i), size += std::fabs(x.at(i));
      e.set(static_cast<size_t>(i), sum, size);
    }
    e.terms = static_cast<int64_t>(row.size());
  }
  return e;
}

Expected matmul(const Values& a, const Values& b, const Values& c, const Sizes& out, double alpha, double beta) {
  Expected e(count_of(out));
  size_t r = out.size();
  int64_t k_count = a.sizes.back();
  e.terms = k_count + 1;
  for (int64_t i = 0; i < count_of(out); ++i) {
    Sizes at = index_of(i, out);
    double sum = 0, size = 0;
    for (int64_t k = 0; k < k_count; ++k) {
      // The operand's own index: leading dimensions broadcast, the matrix dimensions are set.
      auto pick = [&](const Values& t, int64_t row, int64_t column) {
        Sizes mine(t.sizes.size());
        for (size_t d = 0; d + 2 < t.sizes.size(); ++d) mine[d] = t.sizes[d] == 1 ? 0 : at[r - t.sizes.size() + d];
        mine[t.sizes.size() - 2] = row, mine[t.sizes.size() - 1] = column;
        return t.at(element_at(mine, t.sizes));
      };
      double product = pick(a, at[r - 2], k) * pick(b, k, at[r - 1]);
      sum += product, size += std::fabs(product);
    }
    double value = alpha * sum, magnitude = std::fabs(alpha) * size;
    if (c.given && beta != 0) {
      double v = beta * c.at(broadcast_element(i, out, c.sizes));
      value += v, magnitude += std::fabs(v);
    }
    e.set(static_cast<size_t>(i), value, magnitude);
  }
  return e;
}

Expected softmax(const Values& x, int64_t dim, bool logarithm) {
  Expected e(count_of(x.sizes));
  for (const auto& row : rows_into(x.sizes, without(x.sizes, dim))) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i : row) largest = std::max(largest, x.at(i));
    for (int64_t i : row) sum += std::exp(x.at(i) - largest);
    for (int64_t i : row) {
      double shifted = x.at(i) - largest;
      if (logarithm) e.set(static_cast<size_t>(i), shifted - std::log(sum), std::fabs(shifted) + std::log(sum) + std::fabs(largest));
      // An error of the exponent is one of the result, times the exponent's size.
      else e.set(static_cast<size_t>(i), std::exp(shifted) / sum, std::exp(shifted) / sum * (1 + std::fabs(shifted)));
    }
    e.terms = static_cast<int64_t>(row.size());
  }
  return e;
}

Expected softmax_backward(const Values& grad, const Values& y, int64_t dim, bool logarithm) {
  Expected e(count_of(y.sizes));
  for (const auto& row : rows_into(y.sizes, without(y.sizes, dim))) {
    double sum = 0, size = 0;
    for (int64_t i : row) {
      double t = logarithm ? grad.at(i) : grad.at(i) * y.at(i);
      sum += t, size += std::fabs(t);
    }
    for (int64_t i : row) {
      double g = grad.at(i), f = logarithm ? std::exp(y.at(i)) : y.at(i);
      if (logarithm) e.set(static_cast<size_t>(i), g - f * sum, std::fabs(g) + f * size);
      else e.set(static_cast<size_t>(i), f * (g - sum), std::fabs(f) * (std::fabs(g) + size));
    }
    e.terms = static_cast<int64_t>(row.size());
  }
  return e;
}

Expected layer_norm(const Values& x, const Values& weight, const Values& bias, int64_t n_dims, double eps) {
  Expected e(count_of(x.sizes));
  Sizes rows = x.sizes, tail(x.sizes.end() - n_dims, x.sizes.end());
  std::fill(rows.end() - n_dims, rows.end(), 1);
  for (const auto& row : rows_into(x.sizes, rows)) {
    double mean = 0, var = 0, n = static_cast<double>(row.size());
    for (int64_t i : row) mean += x.at(i) / n;
    for (int64_t i : row) var += (x.at(i) - mean) * (x.at(i) - mean) / n;
    double rstd = 1 / std::sqrt(var + eps);
    for (int64_t i : row) {
      int64_t k = i % count_of(tail);
      double w = weight.given ? weight.at(k) : 1, b = bias.given ? bias.at(k) : 0;
      e.set(static_cast<size_t>(i), (x.at(i) - mean) * rstd * w + b, (std::fabs(x.at(i)) + std::fabs(mean)) * rstd * std::fabs(w) + std::fabs(b));
    }
    e.terms = static_cast<int64_t>(row.size());
  }
  return e;
}

Expected batch_norm(const Values& x, const Values& weight, const Values& bias, const Values& mean, const Values& var, double eps) {
  Expected e(count_of(x.sizes));
  for (int64_t i = 0; i < count_of(x.sizes); ++i) {
    int64_t c = index_of(i, x.sizes)[1];
    double scale = (weight.given ? weight.at(c) : 1) / std::sqrt(var.at(c) + eps), shift = bias.given ? bias.at(c) : 0;
    e.set(static_cast<size_t>(i), (x.at(i) - mean.at(c)) * scale + shift, (std::fabs(x.at(i)) + std::fabs(mean.at(c))) * std::fabs(scale) + std::fabs(shift));
  }
  return e;
}

}  // namespace flhal::conformance
