// reference_plugins/host/rows.h: a strided operand seen as rows: some dimensions are walked, the others are one row.
//
// Rows that are dense float32 are used where they lie; others (strided, float16, bfloat16) are gathered into a buffer of
// floats and scattered back. So an op needs one loop over dense float rows, and takes every layout and float type.
#pragma once

#include <flhal/plugin.h>

#include <cstdint>
#include <vector>

#include "plan.h"

namespace flhal::host {

bool is_row_dtype(flhal_dtype dtype);   // float32, float16, bfloat16

class Rows {
 public:
  Rows() = default;
  // Bit d of inner_dims set: dimension d belongs to the row. An absent operand gives no rows: given() is false.
  Rows(const flhal_tensor_v1& t, uint32_t inner_dims);

  bool given() const { return base_ != nullptr; }
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  // Rows may be used in place: float32 and dense.
  bool direct() const { return direct_; }

  // Row r as floats: the memory itself, or `buffer` (length() floats) after a gather.
  const float* read(int64_t r, float* buffer) const {
    char* p = base_ + offset(r, outer_) * bytes_;
    if (direct_) return reinterpret_cast<const float*>(p);
    gather(p, buffer);
    return buffer;
  }
  // Where to compute row r; afterwards call write() with the same pointer.
  float* begin_write(int64_t r, float* buffer) const {
    return direct_ ? reinterpret_cast<float*>(base_ + offset(r, outer_) * bytes_) : buffer;
  }
  void write(int64_t r, const float* values) const {
    if (!direct_) scatter(base_ + offset(r, outer_) * bytes_, values);
  }

 private:
  struct Dim { int64_t size, stride; };
  struct Walk { Dim dims[16]; uint32_t n = 0; };   // innermost first, merged
  static void append(Walk& walk, int64_t size, int64_t stride);
  static int64_t offset(int64_t i, const Walk& walk) {
    if (walk.n == 1) return i * walk.dims[0].stride;
    int64_t at = 0;
    for (uint32_t d = 0; d < walk.n; ++d) at += i % walk.dims[d].size * walk.dims[d].stride, i /= walk.dims[d].size;
    return at;
  }
  void gather(const char* row, float* to) const;
  void scatter(char* row, const float* from) const;

  char* base_ = nullptr;
  flhal_dtype dtype_ = 0;
  int64_t bytes_ = 0, count_ = 1, length_ = 1;
  bool direct_ = false;
  Walk outer_, inner_;
};

}  // namespace flhal::host
