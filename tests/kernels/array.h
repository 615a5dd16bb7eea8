// tests/kernels/array.h: a tensor in host memory with a layout of one's choice and canary bytes around and between.
#pragma once

#include <flhal/plugin.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace flhal::test {

using Sizes = std::vector<int64_t>;
inline constexpr unsigned char kCanary = 0xa5;

inline int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// --- one element, converted by arithmetic on doubles and not by the code under test -----------------------------------
double read_element(flhal_dtype dtype, const unsigned char* p);
void write_element(flhal_dtype dtype, unsigned char* p, double v);
std::string dtype_name(flhal_dtype dtype);

enum class Layout { kDense, kTransposed, kGappy, kStepped, kOffset, kExpanded };
inline constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kGappy, Layout::kStepped, Layout::kOffset};
std::string layout_name(Layout layout);

struct Array {
  flhal_dtype dtype = FLHAL_F32;
  Sizes sizes, strides;
  int64_t first = 0;                        // element index of [0, ..., 0] in bytes
  std::vector<unsigned char> bytes;
  bool scalar = false;                      // a host scalar operand
  bool absent = false;

  Array() = default;
  Array(flhal_dtype dtype, Sizes sizes, Layout layout = Layout::kDense);
  static Array values(flhal_dtype dtype, Sizes sizes, const std::vector<double>& v, Layout layout = Layout::kDense);
  static Array host_scalar(flhal_dtype dtype, double v);
  static Array none();
  // Sizes as given, stride 0 where `self` had size 1.
  Array expanded(const Sizes& to) const;

  int64_t size_bytes() const { return FLHAL_DTYPE_BYTES(dtype); }
  int64_t count() const { return count_of(sizes); }
  unsigned char* at(int64_t logical);       // by row-major number
  const unsigned char* at(int64_t logical) const { return const_cast<Array*>(this)->at(logical); }
  double get(int64_t logical) const { return read_element(dtype, at(logical)); }
  void set(int64_t logical, double v) { write_element(dtype, at(logical), v); }
  std::vector<double> all() const;
  bool canaries_intact() const;             // every byte that belongs to no element
  flhal_tensor_v1 tensor() const;
};

// A reproducible series in [low, high); the same for the same seed on every machine.
std::vector<double> series(int64_t n, uint64_t seed, double low, double high);

}  // namespace flhal::test
