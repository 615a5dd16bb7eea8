// src/dispatch/opset/rule_text.h: what the rules share: the sentence of a refusal, and small comparisons of sizes.
#pragma once

#include <fmt/core.h>

#include <string>

#include "dispatch/opset/call_view.h"

namespace flhal::opset {

inline std::string sizes_text(const int64_t* sizes, uint32_t rank) {
  std::string text = "[";
  for (uint32_t d = 0; d < rank; ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + "]";
}
inline std::string sizes_text(const flhal_tensor& t) { return sizes_text(t.sizes, t.rank); }

template <typename... Args>
[[gnu::cold]] bool refuse(std::string* why, fmt::format_string<Args...> format, Args&&... args) {
  *why = fmt::format(format, std::forward<Args>(args)...);
  return false;
}

inline bool same_sizes(const flhal_tensor& a, const flhal_tensor& b) {
  if (a.rank != b.rank) return false;
  for (uint32_t d = 0; d < a.rank; ++d)
    if (a.sizes[d] != b.sizes[d]) return false;
  return true;
}
inline bool is_tail_of(const flhal_tensor& t, const flhal_tensor& x, uint32_t n) {
  if (t.rank != n) return false;
  for (uint32_t d = 0; d < n; ++d)
    if (t.sizes[d] != x.sizes[x.rank - n + d]) return false;
  return true;
}
inline bool take_sizes(const flhal_tensor& x, Inferred::Out* o) {
  o->rank = x.rank;
  for (uint32_t d = 0; d < x.rank; ++d) o->sizes[d] = x.sizes[d];
  return true;
}
// Attribute 0 is a dimension of a tensor of that rank; negative ones count from the end; rank 0 counts as 1.
inline bool dimension_fits(const CallView& v, uint32_t rank, std::string* why) {
  int64_t dim = v.integer(0), n = rank ? rank : 1;
  if (dim >= -n && dim < n) return true;
  return refuse(why, "dim {} is not in {} .. {}", dim, -n, n - 1);
}
inline uint32_t wrapped_dimension(const CallView& v, uint32_t rank) {
  int64_t dim = v.integer(0);
  return static_cast<uint32_t>(dim < 0 ? dim + (rank ? rank : 1) : dim);
}

}  // namespace flhal::opset
