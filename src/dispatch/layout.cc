// src/dispatch/layout.cc: the cases of layout that are off the fast path.
#include "dispatch/layout.h"

#include <algorithm>
#include <array>
#include <vector>

namespace flhal {
namespace {

struct Dim {
  int64_t size, stride;
};

// Dimensions of size above 1, smallest stride first.
uint32_t sorted_dims(const flhal_tensor& t, std::array<Dim, opset::kMaxRank>& dims) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != 1) dims[n++] = {t.sizes[d], t.strides[d]};
  std::sort(dims.begin(), dims.begin() + n, [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  return n;
}

}  // namespace

bool classify_slowly(const flhal_tensor& t, bool may_be_permuted, View* view, const char** what) {
  if (t.rank > opset::kMaxRank) return *what = "has a rank above 16", false;
  uint64_t elements = 1, last = 0;
  bool zero_stride = false, empty = false, too_large = false;
  for (uint32_t d = 0; d < t.rank; ++d) {
    int64_t size = t.sizes[d], stride = t.strides[d];
    if (size < 0) return *what = "has a negative size", false;
    if (stride < 0) return *what = "has a negative stride", false;
    if (size == 0) empty = true;
    if (size <= 1) continue;
    zero_stride |= stride == 0;
    uint64_t reach;
    too_large |= __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements);
    too_large |= __builtin_mul_overflow(static_cast<uint64_t>(size - 1), static_cast<uint64_t>(stride), &reach);
    too_large |= __builtin_add_overflow(last, reach, &last);
  }
  if (empty) {
    *view = {Layout::kDense, 0, 0};
    return true;
  }
  if (too_large || elements >= kMaxElements || last >= kMaxElements)
    return *what = "reaches over 2^56 elements", false;
  view->span = last + 1;
  view->elements = elements;
  if (zero_stride) {
    view->layout = Layout::kStridedBroadcast;
    return true;
  }
  view->layout = Layout::kStrided;
  if (!may_be_permuted || view->span != elements) return true;
  std::array<Dim, opset::kMaxRank> dims;
  uint32_t n = sorted_dims(t, dims);
  int64_t expected = 1;
  for (uint32_t i = 0; i < n; ++i) {
    if (dims[i].stride != expected) return true;
    expected *= dims[i].size;
  }
  view->layout = Layout::kPermuted;
  return true;
}

bool overlaps_itself(const flhal_tensor& t) {
  std::array<Dim, opset::kMaxRank> dims;
  uint32_t n = sorted_dims(t, dims);
  int64_t reach = 0, elements = 1;
  bool nested = true;   // each stride steps over everything below it
  for (uint32_t i = 0; i < n; ++i) {
    if (dims[i].size == 0) return false;
    if (dims[i].stride == 0) return true;
    nested &= dims[i].stride > reach;
    reach += (dims[i].size - 1) * dims[i].stride;
    elements *= dims[i].size;
  }
  if (nested) return false;
  if (elements > reach + 1) return true;
  if (elements > (1 << 22) || reach > (1 << 28)) return true;
  std::vector<bool> seen(static_cast<size_t>(reach) + 1);
  std::array<int64_t, opset::kMaxRank> at{};
  for (int64_t count = 0, place = 0; count < elements; ++count) {
    if (seen[static_cast<size_t>(place)]) return true;
    seen[static_cast<size_t>(place)] = true;
    for (uint32_t i = 0; i < n; ++i) {
      place += dims[i].stride;
      if (++at[i] < dims[i].size) break;
      place -= dims[i].size * dims[i].stride;
      at[i] = 0;
    }
  }
  return false;
}

bool may_share_elements(const flhal_tensor& a, const flhal_tensor& b) {
  // Two windows of the same rows: equal row pitch (the largest stride), and neither reaches the other's columns.
  std::array<Dim, opset::kMaxRank> da, db;
  uint32_t na = sorted_dims(a, da), nb = sorted_dims(b, db);
  if (na == 0 || nb == 0) return true;
  uint64_t bytes_a = FLHAL_DTYPE_BYTES(a.dtype), bytes_b = FLHAL_DTYPE_BYTES(b.dtype);
  uint64_t pitch = static_cast<uint64_t>(da[na - 1].stride) * bytes_a;
  if (pitch == 0 || pitch != static_cast<uint64_t>(db[nb - 1].stride) * bytes_b) return true;
  uint64_t width_a = bytes_a, width_b = bytes_b;
  for (uint32_t i = 0; i + 1 < na; ++i) width_a += static_cast<uint64_t>((da[i].size - 1) * da[i].stride) * bytes_a;
  for (uint32_t i = 0; i + 1 < nb; ++i) width_b += static_cast<uint64_t>((db[i].size - 1) * db[i].stride) * bytes_b;
  // Columns on a circle of `pitch` bytes: disjoint when the gap from one start to the other holds the first's width.
  uint64_t gap = (b.address - a.address) % pitch;
  if (b.address < a.address) gap = (pitch - (a.address - b.address) % pitch) % pitch;
  return !(gap >= width_a && pitch - gap >= width_b);
}

}  // namespace flhal
