// reference_plugins/host/rows.cc: merging dimensions, and the gather and scatter of rows that are not dense float32.
#include "rows.h"

#include <cstring>

namespace flhal::host {
namespace {

float from_half(uint16_t h) {
  _Float16 v;
  std::memcpy(&v, &h, 2);
  return static_cast<float>(v);
}
uint16_t to_half(float f) {
  const _Float16 v = static_cast<_Float16>(f);
  uint16_t h;
  std::memcpy(&h, &v, 2);
  return h;
}
float from_bfloat(uint16_t h) {
  const uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t to_bfloat(float f) {   // to nearest even; NaN stays NaN
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace

bool is_row_dtype(flhal_dtype t) { return t == FLHAL_F32 || t == FLHAL_F16 || t == FLHAL_BF16; }

void Rows::append(Walk& walk, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (walk.n > 0) {
    Dim& last = walk.dims[walk.n - 1];
    if (stride == last.stride * last.size) {
      last.size *= size;
      return;
    }
  }
  walk.dims[walk.n++] = {size, stride};
}

Rows::Rows(const flhal_tensor_v1& t, uint32_t inner_dims) {
  if (!host::given(t)) return;
  base_ = static_cast<char*>(pointer_of(t));
  dtype_ = t.dtype;
  bytes_ = FLHAL_DTYPE_BYTES(t.dtype);
  for (uint32_t d = t.rank; d-- > 0;) {
    const bool inner = inner_dims >> d & 1;
    append(inner ? inner_ : outer_, t.sizes[d], t.strides[d]);
    (inner ? length_ : count_) *= t.sizes[d];
  }
  if (outer_.n == 0) outer_.dims[outer_.n++] = {1, 0};
  if (inner_.n == 0) inner_.dims[inner_.n++] = {1, 1};
  direct_ = dtype_ == FLHAL_F32 && inner_.n == 1 && (inner_.dims[0].stride == 1 || length_ == 1);
}

void Rows::gather(const char* row, float* to) const {
  const int64_t size = inner_.dims[0].size, stride = inner_.dims[0].stride;
  for (int64_t i = 0; i < length_; i += size) {
    const int64_t at = inner_.n == 1 ? 0 : offset(i, inner_);
    if (dtype_ == FLHAL_F32) {
      auto* p = reinterpret_cast<const float*>(row) + at;
      for (int64_t j = 0; j < size; ++j) to[i + j] = p[j * stride];
    } else {
      auto* p = reinterpret_cast<const uint16_t*>(row) + at;
      if (dtype_ == FLHAL_F16) for (int64_t j = 0; j < size; ++j) to[i + j] = from_half(p[j * stride]);
      else for (int64_t j = 0; j < size; ++j) to[i + j] = from_bfloat(p[j * stride]);
    }
  }
}

void Rows::scatter(char* row, const float* from) const {
  const int64_t size = inner_.dims[0].size, stride = inner_.dims[0].stride;
  for (int64_t i = 0; i < length_; i += size) {
    const int64_t at = inner_.n == 1 ? 0 : offset(i, inner_);
    if (dtype_ == FLHAL_F32) {
      auto* p = reinterpret_cast<float*>(row) + at;
      for (int64_t j = 0; j < size; ++j) p[j * stride] = from[i + j];
    } else {
      auto* p = reinterpret_cast<uint16_t*>(row) + at;
      if (dtype_ == FLHAL_F16) for (int64_t j = 0; j < size; ++j) p[j * stride] = to_half(from[i + j]);
      else for (int64_t j = 0; j < size; ++j) p[j * stride] = to_bfloat(from[i + j]);
    }
  }
}

}  // namespace flhal::host
