// src/kernels/host/convert.cc: conversions between element kinds, with PyTorch's casting rules.
//
// float to integer truncates; what does not fit gives the most negative int32 or int64 before it is narrowed (what x86
// does, and so what PyTorch's CPU gives). Anything to bool: not zero, NaN is true. Complex to real drops the imaginary
// part. Rounding to f16, bf16 is to nearest even; f64 and integers go through f32 first, as PyTorch does.
#include "kernels/host/convert.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

LEVEL_BEGIN
#include "kernels/prelude/host.h"

struct half { uint16_t v; };
struct bhalf { uint16_t v; };
struct complex64 { float re, im; };
struct truth8 { uint8_t v; };      // bool memory: any byte that is not zero is true

#if defined(__F16C__)
FN float widen(half h) { return _cvtsh_ss(h.v); }
FN half narrow_half(float f) { return {(uint16_t)_cvtss_sh(f, 0)}; }
#else
FN float widen(half h) {
  uint32_t w = (uint32_t)h.v << 16, sign = w & 0x80000000u, two_w = w + w;
  float normal = bits_float((int32_t)((two_w >> 4) + (0xe0u << 23))) * 0x1.0p-112f;
  float tiny = bits_float((int32_t)((two_w >> 17) | (126u << 23))) - 0.5f;
  return bits_float((int32_t)(sign | (uint32_t)float_bits(two_w < (1u << 27) ? tiny : normal)));
}
FN half narrow_half(float f) {
  float base = (__builtin_fabsf(f) * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t w = (uint32_t)float_bits(f), two_w = w + w, sign = w & 0x80000000u, bias = two_w & 0xff000000u;
  if (bias < 0x71000000u) bias = 0x71000000u;
  base = bits_float((int32_t)((bias >> 1) + 0x07800000u)) + base;
  uint32_t b = (uint32_t)float_bits(base), mantissa = ((b >> 13) & 0x7c00u) + (b & 0xfffu);
  return {(uint16_t)((sign >> 16) | (two_w > 0xff000000u ? 0x7e00u : mantissa))};
}
#endif
FN float widen(bhalf h) { return bits_float((int32_t)((uint32_t)h.v << 16)); }
FN bhalf narrow_bhalf(float f) {
  uint32_t u = (uint32_t)float_bits(f);
  uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return {(uint16_t)(f != f ? 0x7fc0u : rounded)};
}
template <class F> FN int32_t float_i32(F x) {
  return x >= (F)-2147483648.0 && x < (F)2147483648.0 ? (int32_t)x : (int32_t)(-2147483647 - 1);
}
template <class F> FN int64_t float_i64(F x) {
  return x >= (F)-9223372036854775808.0 && x < (F)9223372036854775808.0 ? (int64_t)x : (int64_t)(-9223372036854775807LL - 1);
}

// Cast<To>::of(From)
template <class To> struct Cast {    // integers
  template <class F> FN To real(F x) { return sizeof(To) < 4 || (sizeof(To) == 4 && (To)-1 < (To)0) ? (To)float_i32(x) : (To)float_i64(x); }
  FN To of(float x) { return sizeof(To) < 4 && (To)-1 > (To)0 ? (To)float_i64(x) : real(x); }
  FN To of(double x) { return sizeof(To) < 4 && (To)-1 > (To)0 ? (To)float_i64(x) : real(x); }
  FN To of(half x) { return of(widen(x)); }
  FN To of(bhalf x) { return of(widen(x)); }
  FN To of(complex64 x) { return of(x.re); }
  FN To of(complex128 x) { return of(x.re); }
  FN To of(truth8 x) { return (To)(x.v != 0); }
  template <class I> FN To of(I x) { return (To)x; }
};
template <> struct Cast<uint64_t> {
  FN uint64_t of(double x) { return x >= 9223372036854775808.0 && x < 18446744073709551616.0 ? (uint64_t)x : (uint64_t)float_i64(x); }
  FN uint64_t of(float x) { return of((double)x); }
  FN uint64_t of(half x) { return of(widen(x)); }
  FN uint64_t of(bhalf x) { return of(widen(x)); }
  FN uint64_t of(complex64 x) { return of(x.re); }
  FN uint64_t of(complex128 x) { return of(x.re); }
  FN uint64_t of(truth8 x) { return x.v != 0; }
  template <class I> FN uint64_t of(I x) { return (uint64_t)x; }
};
template <class F> struct CastFloat {
  FN F of(half x) { return widen(x); }
  FN F of(bhalf x) { return widen(x); }
  FN F of(complex64 x) { return (F)x.re; }
  FN F of(complex128 x) { return (F)x.re; }
  FN F of(truth8 x) { return (F)(x.v != 0); }
  template <class I> FN F of(I x) { return (F)x; }
};
template <> struct Cast<float> : CastFloat<float> {};
template <> struct Cast<double> : CastFloat<double> {};
template <> struct Cast<half> { template <class X> FN half of(X x) { return narrow_half(Cast<float>::of(x)); } };
template <> struct Cast<bhalf> { template <class X> FN bhalf of(X x) { return narrow_bhalf(Cast<float>::of(x)); } };
template <> struct Cast<truth8> {
  FN truth8 of(half x) { return {(uint8_t)((x.v & 0x7fff) != 0)}; }
  FN truth8 of(bhalf x) { return {(uint8_t)((x.v & 0x7fff) != 0)}; }
  FN truth8 of(complex64 x) { return {(uint8_t)(x.re != 0 || x.im != 0)}; }
  FN truth8 of(complex128 x) { return {(uint8_t)(x.re != 0 || x.im != 0)}; }
  FN truth8 of(truth8 x) { return {(uint8_t)(x.v != 0)}; }
  template <class X> FN truth8 of(X x) { return {(uint8_t)(x != 0)}; }
};
template <class F, class C> struct CastComplex {
  FN C of(complex64 x) { return {(F)x.re, (F)x.im}; }
  FN C of(complex128 x) { return {(F)x.re, (F)x.im}; }
  template <class X> FN C of(X x) { return {Cast<F>::of(x), 0}; }
};
template <> struct Cast<complex64> : CastComplex<float, complex64> {};
template <> struct Cast<complex128> : CastComplex<double, complex128> {};

// Memory need not be aligned to its type: a view of bytes may start anywhere.
template <class T> FN T get(const char* p) { T v; __builtin_memcpy(&v, p, sizeof(T)); return v; }
template <class T> FN void put(char* p, T v) { __builtin_memcpy(p, &v, sizeof(T)); }

template <class T, class C> void load_run(void* to, const char* src, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
  C* dst = (C*)to;
  for (int64_t j = 0; j < n1; ++j, src += s1, dst += n0) {
    if (s0 == (int64_t)sizeof(T)) {
#if defined(__F16C__)
      if constexpr (__is_same(T, half) && __is_same(C, float)) {
        int64_t i = 0;
        for (; i + 8 <= n0; i += 8) _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(src + 2 * i))));
        for (; i < n0; ++i) dst[i] = widen(get<half>(src + 2 * i));
        continue;
      }
#endif
#pragma GCC ivdep
      for (int64_t i = 0; i < n0; ++i) dst[i] = Cast<C>::of(get<T>(src + i * (int64_t)sizeof(T)));
    } else if (s0 == 0) {
      C v = n0 ? Cast<C>::of(get<T>(src)) : C{};
      for (int64_t i = 0; i < n0; ++i) dst[i] = v;
    } else {
      for (int64_t i = 0; i < n0; ++i) dst[i] = Cast<C>::of(get<T>(src + i * s0));
    }
  }
}
template <class T, class C> void store_run(char* dst, const void* from, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
  const C* src = (const C*)from;
  for (int64_t j = 0; j < n1; ++j, dst += s1, src += n0) {
    if (s0 == (int64_t)sizeof(T)) {
#if defined(__F16C__)
      if constexpr (__is_same(T, half) && __is_same(C, float)) {
        int64_t i = 0;
        for (; i + 8 <= n0; i += 8) _mm_storeu_si128((__m128i*)(dst + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0));
        for (; i < n0; ++i) put(dst + 2 * i, narrow_half(src[i]));
        continue;
      }
#endif
#pragma GCC ivdep
      for (int64_t i = 0; i < n0; ++i) put(dst + i * (int64_t)sizeof(T), Cast<T>::of(src[i]));
    } else {
      for (int64_t i = 0; i < n0; ++i) put(dst + i * s0, Cast<T>::of(src[i]));
    }
  }
}

#define ROW(run, T) {run<T, float>, run<T, double>, run<T, int64_t>, run<T, int32_t>, run<T, truth8>, run<T, complex128>}
#define TABLE(run) {ROW(run, int8_t), ROW(run, int16_t), ROW(run, int32_t), ROW(run, int64_t), ROW(run, uint8_t), ROW(run, uint16_t), \
  ROW(run, uint32_t), ROW(run, uint64_t), ROW(run, half), ROW(run, bhalf), ROW(run, float), ROW(run, double), \
  ROW(run, complex64), ROW(run, complex128), ROW(run, truth8)}
extern const Load load_table[kKinds][kComputes] = TABLE(load_run);
extern const Store store_table[kKinds][kComputes] = TABLE(store_run);

// Through the narrowest compute type that loses nothing.
void convert_one(void* dst, Kind to, const void* src, Kind from) {
  Compute via = from == kC64 || from == kC128 ? kCC128 : from == kF64 ? kCF64
              : from == kF32 || from == kF16 || from == kBF16 ? kCF32 : from == kBool ? kCBool : kCI64;
  alignas(16) char middle[16];
  load_table[from][via](middle, (const char*)src, 1, kKindBytes[from], 1, 0);
  store_table[to][via]((char*)dst, middle, 1, kKindBytes[to], 1, 0);
}

LEVEL_END
