// tests/kernels/reference.h: slow double-precision references over logical indices; nothing of the code under test.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "array.h"

namespace flhal::test {

// Row-major number of an element -> number of its row (its index with the masked dimensions left out).
inline int64_t row_of(const Sizes& sizes, uint32_t mask, int64_t logical) {
  std::vector<int64_t> at(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) { at[d] = logical % sizes[d]; logical /= sizes[d]; }
  int64_t row = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!(mask >> d & 1)) row = row * sizes[d] + at[d];
  return row;
}

// The elements of each row in logical order; `mask` says which dimensions make up a row.
inline std::vector<std::vector<int64_t>> rows_of(const Sizes& sizes, uint32_t mask) {
  int64_t n_rows = 1;
  for (size_t d = 0; d < sizes.size(); ++d) if (!(mask >> d & 1)) n_rows *= sizes[d];
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(n_rows));
  for (int64_t i = 0; i < count_of(sizes); ++i) rows[static_cast<size_t>(row_of(sizes, mask, i))].push_back(i);
  return rows;
}

inline std::vector<double> reduce(const Array& x, uint32_t mask, const std::function<double(const std::vector<double>&)>& f) {
  std::vector<double> out;
  for (const auto& row : rows_of(x.sizes, mask)) {
    std::vector<double> t;
    for (int64_t i : row) t.push_back(x.get(i));
    out.push_back(f(t));
  }
  return out;
}
inline std::vector<double> per_row2(const Array& x, const Array& y, uint32_t mask,
                                    const std::function<std::vector<double>(std::vector<double>, const std::vector<double>&)>& f) {
  std::vector<double> out(static_cast<size_t>(x.count()));
  for (const auto& row : rows_of(x.sizes, mask)) {
    std::vector<double> a, b;
    for (int64_t i : row) { a.push_back(x.get(i)); b.push_back(y.get(i)); }
    std::vector<double> r = f(a, b);
    for (size_t i = 0; i < row.size(); ++i) out[static_cast<size_t>(row[i])] = r[i];
  }
  return out;
}
inline std::vector<double> per_row(const Array& x, uint32_t mask, const std::function<std::vector<double>(std::vector<double>)>& f) {
  return per_row2(x, x, mask, [&](std::vector<double> a, const std::vector<double>&) { return f(std::move(a)); });
}

struct RowStats { double mean, variance, rstd; };
inline RowStats stats_of(const std::vector<double>& t, double eps) {
  RowStats s{};
  for (double e : t) s.mean += e / static_cast<double>(t.size());
  for (double e : t) s.variance += (e - s.mean) * (e - s.mean) / static_cast<double>(t.size());
  s.rstd = 1 / std::sqrt(s.variance + eps);
  return s;
}

}  // namespace flhal::test
