// src/kernels/prelude/opencl_math.h: the arithmetic of expressions and row texts in OpenCL C; rules as in prelude/host.h.
//
// Where a primitive is a macro, it is one for vectors of T too: reductions add whole registers with it.
#if COMPUTE != C_RAW
#define maximum(a, b) ((a) == (a) ? ((a) > (b) ? (a) : (b)) : (a))   // NaN wins: a > b is false when b is NaN
#define minimum(a, b) ((a) == (a) ? ((a) < (b) ? (a) : (b)) : (a))
#define truth(a) ((a) != T(0))
#define same(a, b) ((a) == (b))
#define signum(a) T(((a) > T(0)) - ((a) < T(0)))
#endif

#if IS_FLOAT
// In front of a block: a*b+c in it is one operation where the chip has it. The built-in mad is two in some compilers, and a call in
// others.
#define FUSES _Pragma("OPENCL FP_CONTRACT ON")
FN T fused(T a, T b, T c) { FUSES return a * b + c; }
#undef mad
#define mad(a, b, c) fused(a, b, c)
#define add(a, b) ((a) + (b))
#define sub(a, b) ((a) - (b))
#define mul(a, b) ((a) * (b))
#define div(a, b) ((a) / (b))
#define neg(a) (-(a))
#if COMPUTE == C_F32   // by bits: the built-ins are calls in some compilers, and calls stop vectors
#define absolute(a) as_float(as_int(a) & 0x7fffffff)
#define copysign_of(a, b) as_float((as_int(a) & 0x7fffffff) | (as_int(b) & (int)0x80000000u))
#else
#define absolute(a) fabs(a)
#define copysign_of(a, b) copysign(a, b)
#endif
#define floor_of(a) floor(a)
#define ceil_of(a) ceil(a)
#define trunc_of(a) trunc(a)
#define round_of(a) rint(a)
#define fmod_of(a, b) fmod(a, b)
#define power(a, b) pow(a, b)
#define is_nan(a) ((a) != (a))
#define is_inf(a) (fabs(a) == T(INFINITY))
#define is_finite(a) (fabs(a) < T(INFINITY))
#define LOWEST T(-INFINITY)
#define HIGHEST T(INFINITY)
#define div_trunc(a, b) trunc((a) / (b))
#define exp2_of(a) exp2(a)
#define expm1_of(a) expm1(a)
#define log_of(a) log(a)
#define log2_of(a) log2(a)
#define log10_of(a) log10(a)
#define log1p_of(a) log1p(a)
#define sin_of(a) sin(a)
#define cos_of(a) cos(a)
#define tan_of(a) tan(a)
#define asin_of(a) asin(a)
#define acos_of(a) acos(a)
#define atan_of(a) atan(a)
#define sinh_of(a) sinh(a)
#define cosh_of(a) cosh(a)
#define erfc_of(a) erfc(a)
#define atan2_of(a, b) atan2(a, b)
#if COMPUTE == C_F32
@include text/curves.clk
#else
#define exp_of(a) exp(a)
#define tanh_of(a) tanh(a)
#define erf_of(a) erf(a)
FN T gelu_of(T a) { return a * T(0.5) * (T(1) + erf(a * T(0.70710678118654752440))); }
#endif
FN T sigmoid_of(T a) { return T(1) / (T(1) + exp_of(-a)); }
FN T remainder_of(T a, T b) {
  T m = fmod_of(a, b);
  return m != 0 && ((b < 0) != (m < 0)) ? m + b : m;
}
FN T div_floor(T a, T b) {   // exact where a/b would round up to the next integer
  if (b == 0) return a / b;
  T m = fmod_of(a, b), d = (a - m) / b;
  if (m != 0 && ((b < 0) != (m < 0))) d -= 1;
  if (d == 0) return copysign(T(0), a / b);
  T f = floor(d);
  return d - f > T(0.5) ? f + 1 : f;
}
@include text/slopes.clk
#elif COMPUTE == C_I64 || COMPUTE == C_I32
#if WIDE_LANES   // row texts: whole registers, so no casts
#define add(a, b) ((a) + (b))
#define mul(a, b) ((a) * (b))
#else
#define add(a, b) T(UT_(a) + UT_(b))
#define mul(a, b) T(UT_(a) * UT_(b))
#endif
#define UT_(a) ((UT)(a))
#define sub(a, b) T(UT_(a) - UT_(b))
#define neg(a) T((UT)0 - UT_(a))
#undef mad   // in some drivers a macro of the compiler, for floats alone
#define mad(a, b, c) T(UT_(a) * UT_(b) + UT_(c))
FN T absolute(T a) { return a < 0 ? neg(a) : a; }
FN T quotient(T a, T b) { return b == 0 ? 0 : b == -1 ? neg(a) : a / b; }
FN T modulo(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
FN T div_floor(T a, T b) {
  T q = quotient(a, b), r = modulo(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? q - 1 : q;
}
FN T remainder_of(T a, T b) {
  T r = modulo(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
#define div_trunc(a, b) quotient(a, b)
#define fmod_of(a, b) modulo(a, b)
#define floor_of(a) (a)
#define ceil_of(a) (a)
#define trunc_of(a) (a)
#define round_of(a) (a)
#define is_nan(a) 0
#define is_inf(a) 0
#define is_finite(a) 1
#if COMPUTE == C_I64
#define LOWEST LONG_MIN
#define HIGHEST LONG_MAX
#define WIDTH 64
#else
#define LOWEST INT_MIN
#define HIGHEST INT_MAX
#define WIDTH 32
#endif
#define shift_left(a, b) (UT_(b) >= WIDTH ? T(0) : T(UT_(a) << UT_(b)))
#define shift_right(a, b) ((a) >> (UT_(b) >= WIDTH ? WIDTH - 1 : (b)))
FN T power(T a, T b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
  UT r = 1, x = (UT)a;
  for (UT e = (UT)b; e; e >>= 1) { if (e & 1) r *= x; x *= x; }
  return (T)r;
}
#elif COMPUTE == C_BOOL
#define is_nan(a) 0
#define is_inf(a) 0
#define is_finite(a) 1
#endif
