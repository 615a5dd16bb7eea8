// reference_plugins/host/vec.h: sixteen floats at a time, for the loops that are ours.
//
// GCC's vector type is split into what the instruction set has (one AVX-512 register, two of AVX2, four of SSE2), so one
// text serves three levels: FLHAL_LEVELS compiles a function for each and lets the loader choose. Everything a leveled
// function calls must be FLHAL_INLINE, else it would run at the lowest level.
#pragma once

#include <cstdint>
#include <cstring>

// Sanitizers run before the loader's choice is possible.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FLHAL_LEVELS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FLHAL_LEVELS
#endif
#define FLHAL_INLINE inline __attribute__((always_inline))

// Inline functions that take vectors by value have no ABI to break.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace flhal::host {

typedef float Vec __attribute__((vector_size(64)));
typedef int32_t VecInt __attribute__((vector_size(64)));
inline constexpr int64_t kLanes = 16;

FLHAL_INLINE Vec splat(float x) { return Vec{} + x; }
FLHAL_INLINE Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
FLHAL_INLINE void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
// The first n (below 16) values; the other lanes are `pad`.
FLHAL_INLINE Vec load_part(const float* p, int64_t n, float pad) {
  float t[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) t[i] = i < n ? p[i] : pad;
  return load(t);
}
FLHAL_INLINE void store_part(float* p, int64_t n, Vec v) {
  float t[kLanes];
  store(t, v);
  for (int64_t i = 0; i < n; ++i) p[i] = t[i];
}
FLHAL_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
FLHAL_INLINE float sum_lanes(Vec v) {
  float t[kLanes];
  store(t, v);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}
FLHAL_INLINE float max_lanes(Vec v) {
  float t[kLanes];
  store(t, v);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) t[i] = t[i] > t[i + half] ? t[i] : t[i + half];
  return t[0];
}

// e^x within 1.5 ulp; overflows to infinity, goes through the denormals to 0, keeps NaN.
// Cephes expf: x = n ln 2 + r, a polynomial of degree 7 in r, and 2^n in two factors (n reaches -150 and 128).
FLHAL_INLINE Vec exp(Vec x) {
  x = x < splat(-104.0f) ? splat(-104.0f) : x;
  x = x > splat(89.0f) ? splat(89.0f) : x;
  const Vec magic = splat(12582912.0f);   // adding 1.5 * 2^23 rounds to a whole number
  const Vec n = (x * splat(1.44269504088896341f) + magic) - magic;
  Vec r = x - n * splat(0.693359375f);
  r = r - n * splat(-2.12194440e-4f);
  Vec p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = (p * r) * r + r + splat(1.0f);
  const VecInt whole = __builtin_convertvector(n, VecInt);
  const VecInt half = whole >> 1, rest = whole - half;
  const VecInt a = (half + 127) << 23, b = (rest + 127) << 23;
  Vec fa, fb;
  std::memcpy(&fa, &a, sizeof fa);
  std::memcpy(&fb, &b, sizeof fb);
  return p * fa * fb;
}

}  // namespace flhal::host
