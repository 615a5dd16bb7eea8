// conformance/reference/values.cc: attributes and index arithmetic.
#include "reference/values.h"

namespace flhal::conformance {

Attributes& Attributes::number(uint32_t key, double v, bool dynamic) {
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_FLOAT, a.flags = dynamic ? FLHAL_ATTR_DYNAMIC : 0, a.count = 1, a.v.f = v;
  list_.push_back(a);
  return *this;
}
Attributes& Attributes::integer(uint32_t key, int64_t v) {
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_INT, a.count = 1, a.v.i = v;
  list_.push_back(a);
  return *this;
}
Attributes& Attributes::ints(uint32_t key, int64_t first, int64_t second) {
  pairs_.push_back({first, second});
  flhal_attr_v1 a{};
  a.key = key, a.kind = FLHAL_ATTR_INTS, a.count = 2, a.v.p = pairs_.back().data();
  list_.push_back(a);
  return *this;
}
Attributes& Attributes::philox(uint32_t key, uint64_t seed, uint64_t offset) {
  ints(key, static_cast<int64_t>(seed), static_cast<int64_t>(offset));
  list_.back().kind = FLHAL_ATTR_PHILOX;
  list_.back().count = 1;
  list_.back().flags = FLHAL_ATTR_DYNAMIC;
  return *this;
}
const flhal_attr_v1* Attributes::find(uint32_t key) const {
  for (const flhal_attr_v1& a : list_)
    if (a.key == key) return &a;
  return nullptr;
}
double Attributes::number_of(uint32_t key, double otherwise) const {
  const flhal_attr_v1* a = find(key);
  return a != nullptr ? a->v.f : otherwise;
}
int64_t Attributes::integer_of(uint32_t key, int64_t otherwise) const {
  const flhal_attr_v1* a = find(key);
  return a != nullptr ? a->v.i : otherwise;
}
int64_t Attributes::int_of(uint32_t key, size_t i, int64_t otherwise) const {
  const flhal_attr_v1* a = find(key);
  return a != nullptr ? static_cast<const int64_t*>(a->v.p)[i] : otherwise;
}

Sizes index_of(int64_t i, const Sizes& sizes) {
  Sizes at(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) at[d] = i % sizes[d], i /= sizes[d];
  return at;
}
int64_t element_at(const Sizes& at, const Sizes& sizes) {
  int64_t i = 0;
  for (size_t d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d];
  return i;
}
int64_t broadcast_element(int64_t i, const Sizes& out, const Sizes& in) {
  Sizes at = index_of(i, out), mine(in.size());
  for (size_t d = 0; d < in.size(); ++d) mine[d] = in[d] == 1 ? 0 : at[out.size() - in.size() + d];
  return element_at(mine, in);
}

}  // namespace flhal::conformance
