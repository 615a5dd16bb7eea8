// conformance/reference/moves.cc: operations that move elements.
#include <cmath>

#include "reference/values.h"

namespace flhal::conformance {

Expected index_select(const Values& x, const Values& index, const Sizes& out, int64_t dim) {
  Expected e(count_of(out));
  auto d = static_cast<size_t>(dim);
  for (int64_t i = 0; i < count_of(out); ++i) {
    Sizes at = index_of(i, out), which(at.begin() + dim, at.begin() + dim + static_cast<int64_t>(index.sizes.size()));
    Sizes from(at.begin(), at.begin() + dim);
    from.push_back(static_cast<int64_t>(index.at(element_at(which, index.sizes))));
    from.insert(from.end(), at.begin() + static_cast<int64_t>(d + index.sizes.size()), at.end());
    double v = x.at(element_at(from, x.sizes));
    e.set(static_cast<size_t>(i), v, std::fabs(v));
  }
  return e;
}
Expected gather(const Values& x, const Values& index, int64_t dim) {
  Expected e(count_of(index.sizes));
  for (int64_t i = 0; i < count_of(index.sizes); ++i) {
    Sizes at = index_of(i, index.sizes);
    at[static_cast<size_t>(dim)] = static_cast<int64_t>(index.at(i));
    double v = x.at(element_at(at, x.sizes));
    e.set(static_cast<size_t>(i), v, std::fabs(v));
  }
  return e;
}
Expected scatter(const Values& before, const Values& index, const Values& src, int64_t dim, bool add) {
  Expected e(count_of(before.sizes));
  for (size_t i = 0; i < before.v.size(); ++i) e.set(i, before.v[i], std::fabs(before.v[i]));
  e.terms = index.sizes[static_cast<size_t>(dim)];
  for (int64_t i = 0; i < count_of(index.sizes); ++i) {
    Sizes at = index_of(i, index.sizes);
    double v = src.at(element_at(at, src.sizes));
    at[static_cast<size_t>(dim)] = static_cast<int64_t>(index.at(i));
    auto to = static_cast<size_t>(element_at(at, before.sizes));
    e.set(to, add ? e.value[to] + v : v, e.magnitude[to] + std::fabs(v));
  }
  return e;
}
Expected index_add(const Values& before, const Values& index, const Values& src, int64_t dim) {
  Expected e(count_of(before.sizes));
  for (size_t i = 0; i < before.v.size(); ++i) e.set(i, before.v[i], std::fabs(before.v[i]));
  e.terms = count_of(index.sizes) + 1;
  for (int64_t i = 0; i < count_of(src.sizes); ++i) {
    Sizes at = index_of(i, src.sizes);
    at[static_cast<size_t>(dim)] = static_cast<int64_t>(index.at(at[static_cast<size_t>(dim)]));
    auto to = static_cast<size_t>(element_at(at, before.sizes));
    e.set(to, e.value[to] + src.at(i), e.magnitude[to] + std::fabs(src.at(i)));
  }
  return e;
}
Expected triangle(const Values& x, int64_t diagonal, bool lower) {
  Expected e(count_of(x.sizes));
  for (int64_t i = 0; i < count_of(x.sizes); ++i) {
    Sizes at = index_of(i, x.sizes);
    int64_t row = at[at.size() - 2], column = at[at.size() - 1];
    bool kept = lower ? column <= row + diagonal : column >= row + diagonal;
    e.set(static_cast<size_t>(i), kept ? x.at(i) : 0, 0);
  }
  return e;
}
Expected cat(const std::vector<Values>& in, const Sizes& out, int64_t dim) {
  Expected e(count_of(out));
  int64_t from = 0;
  for (const Values& x : in) {
    for (int64_t i = 0; i < count_of(x.sizes); ++i) {
      Sizes at = index_of(i, x.sizes);
      at[static_cast<size_t>(dim)] += from;
      e.set(static_cast<size_t>(element_at(at, out)), x.at(i), 0);
    }
    from += x.sizes[static_cast<size_t>(dim)];
  }
  return e;
}

}  // namespace flhal::conformance
