// src/kernels/prelude/host.h: the primitives of the kernel texts and expressions, for the dialect "flhal-host-1".
//
// A primitive is overloaded on its type: float, double, int64_t, int32_t, bool8 (a byte that is 0 or 1), complex. Its
// comment is the rule every dialect must keep; the rules are those of PyTorch's CPU operators.
// Included inside the namespace of an instruction set level, and only there.
#define FN static inline __attribute__((always_inline))
#define FN_MEMBER inline __attribute__((always_inline))
#define GLOBAL   // OpenCL: __global

#if defined(__FMA__)
FN float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FN double mad(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else  // a*b+c may be rounded twice: used only where the error bound allows both
FN float mad(float a, float b, float c) { return a * b + c; }
FN double mad(double a, double b, double c) { return a * b + c; }
#endif

FN int64_t mad(int64_t a, int64_t b, int64_t c) { return (int64_t)((uint64_t)a * (uint64_t)b + (uint64_t)c); }
FN int32_t mad(int32_t a, int32_t b, int32_t c) { return (int32_t)((uint32_t)a * (uint32_t)b + (uint32_t)c); }

template <class T> struct is_float { static constexpr bool value = false; };
template <> struct is_float<float> { static constexpr bool value = true; };
template <> struct is_float<double> { static constexpr bool value = true; };

struct complex128 { double re, im; };
typedef uint8_t bool8;

FN float bits_float(int32_t i) { float f; __builtin_memcpy(&f, &i, 4); return f; }
FN int32_t float_bits(float f) { int32_t i; __builtin_memcpy(&i, &f, 4); return i; }

// --- arithmetic: integers wrap; bool is computed in int64 and stored as "not zero" -----------------------------------
#define FLHAL_FLOAT_OP(name, text) FN float name(float a, float b) { return text; } FN double name(double a, double b) { return text; }
#define FLHAL_WRAP_OP(name, text)                                                                          \
  FN int64_t name(int64_t x, int64_t y) { uint64_t a = (uint64_t)x, b = (uint64_t)y; return (int64_t)(text); } \
  FN int32_t name(int32_t x, int32_t y) { uint32_t a = (uint32_t)x, b = (uint32_t)y; return (int32_t)(text); }
FLHAL_FLOAT_OP(add, a + b)
FLHAL_FLOAT_OP(sub, a - b)
FLHAL_FLOAT_OP(mul, a * b)
FLHAL_WRAP_OP(add, a + b)
FLHAL_WRAP_OP(sub, a - b)
FLHAL_WRAP_OP(mul, a * b)
FN complex128 add(complex128 a, complex128 b) { return {a.re + b.re, a.im + b.im}; }
FN complex128 sub(complex128 a, complex128 b) { return {a.re - b.re, a.im - b.im}; }
FN complex128 mul(complex128 a, complex128 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
FN complex128 mad(complex128 a, complex128 b, complex128 c) { return add(mul(a, b), c); }
FN complex128 div(complex128 a, complex128 b) {  // scaled by the larger part, so that |b|^2 does not overflow
  if (__builtin_fabs(b.re) >= __builtin_fabs(b.im)) {
    double r = b.im / b.re, d = b.re + b.im * r;
    return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  double r = b.re / b.im, d = b.re * r + b.im;
  return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
FLHAL_FLOAT_OP(div, a / b)

FN float neg(float a) { return -a; }
FN double neg(double a) { return -a; }
FN int64_t neg(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
FN int32_t neg(int32_t a) { return (int32_t)(0 - (uint32_t)a); }
FN complex128 neg(complex128 a) { return {-a.re, -a.im}; }
FN float absolute(float a) { return __builtin_fabsf(a); }
FN double absolute(double a) { return __builtin_fabs(a); }
FN int64_t absolute(int64_t a) { return a < 0 ? neg(a) : a; }   // the most negative integer stays
FN int32_t absolute(int32_t a) { return a < 0 ? neg(a) : a; }
template <class T> FN T signum(T a) { return (T)((a > (T)0) - (a < (T)0)); }   // NaN gives 0

// --- integer division: rounds towards zero; by zero gives 0 and a fault; most negative / -1 wraps --------------------
// The block functions look for zeros in the divisor; these only never trap.
FN int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? neg(a) : a / b; }
FN int32_t quotient(int32_t a, int32_t b) { return b == 0 ? 0 : b == -1 ? neg(a) : a / b; }
FN int64_t modulo(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }   // sign of a
FN int32_t modulo(int32_t a, int32_t b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class I> FN I div_floor_int(I a, I b) {
  I q = quotient(a, b), r = modulo(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? q - 1 : q;
}
FN int64_t div_floor(int64_t a, int64_t b) { return div_floor_int(a, b); }
FN int32_t div_floor(int32_t a, int32_t b) { return div_floor_int(a, b); }
FN int64_t div_trunc(int64_t a, int64_t b) { return quotient(a, b); }
FN int32_t div_trunc(int32_t a, int32_t b) { return quotient(a, b); }
// Python's %: the sign of the divisor.
FN int64_t remainder_of(int64_t a, int64_t b) { int64_t r = modulo(a, b); return r != 0 && ((r < 0) != (b < 0)) ? r + b : r; }
FN int32_t remainder_of(int32_t a, int32_t b) { int32_t r = modulo(a, b); return r != 0 && ((r < 0) != (b < 0)) ? r + b : r; }
// C's fmod: the sign of the dividend.
FN int64_t fmod_of(int64_t a, int64_t b) { return modulo(a, b); }
FN int32_t fmod_of(int32_t a, int32_t b) { return modulo(a, b); }
FN float fmod_of(float a, float b) { return __builtin_fmodf(a, b); }
FN double fmod_of(double a, double b) { return __builtin_fmod(a, b); }
template <class F> FN F remainder_float(F a, F b) {
  F m = fmod_of(a, b);
  return m != 0 && ((b < 0) != (m < 0)) ? m + b : m;
}
FN float remainder_of(float a, float b) { return remainder_float(a, b); }
FN double remainder_of(double a, double b) { return remainder_float(a, b); }

// --- rounding: half to even -------------------------------------------------------------------------------------------
#define FLHAL_UNARY_F(name, ff, dd) FN float name(float a) { return ff; } FN double name(double a) { return dd; }
#define FLHAL_IDENTITY_I(name) FN int64_t name(int64_t a) { return a; } FN int32_t name(int32_t a) { return a; }
FLHAL_UNARY_F(floor_of, __builtin_floorf(a), __builtin_floor(a))
FLHAL_UNARY_F(ceil_of, __builtin_ceilf(a), __builtin_ceil(a))
FLHAL_UNARY_F(trunc_of, __builtin_truncf(a), __builtin_trunc(a))
FLHAL_UNARY_F(round_of, __builtin_rintf(a), __builtin_rint(a))
FLHAL_IDENTITY_I(floor_of)
FLHAL_IDENTITY_I(ceil_of)
FLHAL_IDENTITY_I(trunc_of)
FLHAL_IDENTITY_I(round_of)
FN float div_trunc(float a, float b) { return trunc_of(a / b); }
FN double div_trunc(double a, double b) { return trunc_of(a / b); }
// Python's //: exact where a/b would round up to the next integer; a / 0 is inf or NaN.
template <class F> FN F div_floor_float(F a, F b) {
  if (b == 0) return a / b;
  F m = fmod_of(a, b), d = (a - m) / b;
  if (m != 0 && ((b < 0) != (m < 0))) d -= 1;
  if (d == 0) return is_float<F>::value && sizeof(F) == 4 ? (F)__builtin_copysignf(0.0f, (float)(a / b)) : (F)__builtin_copysign(0.0, (double)(a / b));
  F f = floor_of(d);
  return d - f > (F)0.5 ? f + 1 : f;
}
FN float div_floor(float a, float b) { return div_floor_float(a, b); }
FN double div_floor(double a, double b) { return div_floor_float(a, b); }

// --- comparisons and choices: NaN wins in maximum and minimum ---------------------------------------------------------
// One text for numbers and vectors. a > b is false when b is NaN, so b comes out; only a has to be asked. For integers
// a == a folds away.
template <class T> FN T maximum(T a, T b) { T m = a > b ? a : b; return a == a ? m : a; }
template <class T> FN T minimum(T a, T b) { T m = a < b ? a : b; return a == a ? m : a; }
template <class T> struct Limits;
template <> struct Limits<float> { static constexpr float low = -__builtin_inff(), high = __builtin_inff(); };
template <> struct Limits<double> { static constexpr double low = -__builtin_inf(), high = __builtin_inf(); };
template <> struct Limits<int64_t> { static constexpr int64_t high = 9223372036854775807LL, low = -high - 1; };
template <> struct Limits<int32_t> { static constexpr int32_t high = 2147483647, low = -high - 1; };
template <class T> FN T lowest() { return Limits<T>::low; }
template <class T> FN T highest() { return Limits<T>::high; }
template <class T> FN bool8 is_nan(T a) { return is_float<T>::value ? a != a : 0; }
FN bool8 is_inf(float a) { return __builtin_fabsf(a) == __builtin_inff(); }
FN bool8 is_inf(double a) { return __builtin_fabs(a) == __builtin_inf(); }
FN bool8 is_finite(float a) { return __builtin_fabsf(a) < __builtin_inff(); }
FN bool8 is_finite(double a) { return __builtin_fabs(a) < __builtin_inf(); }
template <class T> FN bool8 is_inf(T) { return 0; }
template <class T> FN bool8 is_finite(T) { return 1; }
template <class T> FN bool8 truth(T a) { return a != (T)0; }      // NaN is true
FN bool8 truth(complex128 a) { return a.re != 0 || a.im != 0; }
FN bool8 same(complex128 a, complex128 b) { return a.re == b.re && a.im == b.im; }
template <class T> FN bool8 same(T a, T b) { return a == b; }

// --- bits: a shift by less than 0 or at least the width gives 0 (left) or the sign (right) ----------------------------
FN int64_t shift_left(int64_t a, int64_t b) { return (uint64_t)b > 63 ? 0 : (int64_t)((uint64_t)a << b); }
FN int32_t shift_left(int32_t a, int32_t b) { return (uint32_t)b > 31 ? 0 : (int32_t)((uint32_t)a << b); }
FN int64_t shift_right(int64_t a, int64_t b) { return a >> ((uint64_t)b > 63 ? 63 : b); }
FN int32_t shift_right(int32_t a, int32_t b) { return a >> ((uint32_t)b > 31 ? 31 : b); }

// --- powers -----------------------------------------------------------------------------------------------------------
// Integers: a negative exponent gives 1 for base 1, 1 or -1 for base -1, else 0.
template <class I, class U> FN I power_int(I a, I b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
  U r = 1, x = (U)a;
  for (U e = (U)b; e; e >>= 1) { if (e & 1) r *= x; x *= x; }
  return (I)r;
}
FN int64_t power(int64_t a, int64_t b) { return power_int<int64_t, uint64_t>(a, b); }
FN int32_t power(int32_t a, int32_t b) { return power_int<int32_t, uint32_t>(a, b); }
FN float power(float a, float b) { return __builtin_powf(a, b); }
FN double power(double a, double b) { return __builtin_pow(a, b); }
FLHAL_UNARY_F(sqrt_of, __builtin_sqrtf(a), __builtin_sqrt(a))

// --- exponentials ---------------------------------------------------------------------------------------------------------
FN float copysign_of(float a, float b) { return __builtin_copysignf(a, b); }
#include "kernels/text/curves.clk"
FN double exp_of(double a) { return __builtin_exp(a); }
FN double tanh_of(double a) { return __builtin_tanh(a); }
FN double erf_of(double a) { return __builtin_erf(a); }
FN double gelu_of(double a) { return a * 0.5 * (1.0 + erf_of(a * 0.70710678118654752440)); }
template <class F> FN F sigmoid_of(F a) { return (F)1 / ((F)1 + exp_of(-a)); }

// --- other functions of the C library -----------------------------------------------------------------------------------
FLHAL_UNARY_F(exp2_of, __builtin_exp2f(a), __builtin_exp2(a))
FLHAL_UNARY_F(expm1_of, __builtin_expm1f(a), __builtin_expm1(a))
FLHAL_UNARY_F(log_of, __builtin_logf(a), __builtin_log(a))
FLHAL_UNARY_F(log2_of, __builtin_log2f(a), __builtin_log2(a))
FLHAL_UNARY_F(log10_of, __builtin_log10f(a), __builtin_log10(a))
FLHAL_UNARY_F(log1p_of, __builtin_log1pf(a), __builtin_log1p(a))
FLHAL_UNARY_F(sin_of, __builtin_sinf(a), __builtin_sin(a))
FLHAL_UNARY_F(cos_of, __builtin_cosf(a), __builtin_cos(a))
FLHAL_UNARY_F(tan_of, __builtin_tanf(a), __builtin_tan(a))
FLHAL_UNARY_F(asin_of, __builtin_asinf(a), __builtin_asin(a))
FLHAL_UNARY_F(acos_of, __builtin_acosf(a), __builtin_acos(a))
FLHAL_UNARY_F(atan_of, __builtin_atanf(a), __builtin_atan(a))
FLHAL_UNARY_F(sinh_of, __builtin_sinhf(a), __builtin_sinh(a))
FLHAL_UNARY_F(cosh_of, __builtin_coshf(a), __builtin_cosh(a))
FLHAL_UNARY_F(erfc_of, __builtin_erfcf(a), __builtin_erfc(a))
FN float atan2_of(float a, float b) { return __builtin_atan2f(a, b); }
FN double atan2_of(double a, double b) { return __builtin_atan2(a, b); }

#define GENERIC template <class T> FN
#include "kernels/text/slopes.clk"

// --- vectors: what the row texts accumulate in. LANES lanes always, in as many registers as that takes, so that every
// level adds in the same order ---------------------------------------------------------------------------------------------
template <class T> struct VecOf { typedef T type __attribute__((vector_size(FLHAL_VECTOR_BYTES))); };
template <class T> struct Lanes {
  static constexpr int lanes = 128 / sizeof(T), per = FLHAL_VECTOR_BYTES / sizeof(T), registers = lanes / per;
  typedef typename VecOf<T>::type vec;
  vec r[registers];
  static FN_MEMBER vec splat(T v) { return v - vec{}; }
};
template <> struct Lanes<complex128> {
  static constexpr int lanes = 8, per = 1, registers = 8;
  typedef complex128 vec;
  vec r[registers];
  static FN_MEMBER vec splat(complex128 v) { return v; }
};
// One register at a time: GCC 12 copies a larger struct through the stack. Memory is aligned to the element only.
template <class T> FN Lanes<T> load_lanes(const T* p) {
  Lanes<T> x;
  if constexpr (Lanes<T>::per > 1) {
    typedef T loose __attribute__((vector_size(FLHAL_VECTOR_BYTES), aligned(1), may_alias));
    for (int i = 0; i < Lanes<T>::registers; ++i) x.r[i] = *(const loose*)(p + i * Lanes<T>::per);
  } else {
    for (int i = 0; i < Lanes<T>::registers; ++i) __builtin_memcpy(&x.r[i], p + i, sizeof(T));
  }
  return x;
}
template <class T, class V> FN void store_register(T* p, const V& x) { __builtin_memcpy(p, &x, sizeof(x)); }
// On vectors; the scalar overloads above are better matches for scalars.
template <class V> FN V add(V a, V b) { return a + b; }
template <class V> FN V mul(V a, V b) { return a * b; }
#define IVDEP _Pragma("GCC ivdep")
#define UNROLL _Pragma("GCC unroll 16")
