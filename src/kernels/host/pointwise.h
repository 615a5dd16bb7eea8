// src/kernels/host/pointwise.h: from a row of exprs.def to a kernel function of one compute type.
//
// Included by host/pointwise_<type>.cc, which say which type they make; each fills one table, [expr].
#pragma once

#include "kernels/host/drive.h"
#include "kernels/kernel_fault.h"

LEVEL_BEGIN
#include "kernels/prelude/host.h"

template <bool B, class X, class Y> struct Pick { using type = X; };
template <class X, class Y> struct Pick<false, X, Y> { using type = Y; };
template <bool B, class X, class Y> using pick_t = typename Pick<B, X, Y>::type;

template <class T> struct ComputeOf;
template <> struct ComputeOf<float> { static constexpr Compute value = kCF32; };
template <> struct ComputeOf<double> { static constexpr Compute value = kCF64; };
template <> struct ComputeOf<int64_t> { static constexpr Compute value = kCI64; };
template <> struct ComputeOf<int32_t> { static constexpr Compute value = kCI32; };
template <> struct ComputeOf<bool8> { static constexpr Compute value = kCBool; };
template <> struct ComputeOf<complex128> { static constexpr Compute value = kCC128; };

// The attributes in the compute type.
template <class T> FN T number(const PointwiseParams* p, int i) { return is_float<T>::value ? (T)p->pf[i] : (T)p->pi[i]; }
template <> inline __attribute__((always_inline)) complex128 number<complex128>(const PointwiseParams* p, int i) { return {p->pf[i], i == 0 ? p->pf[3] : 0.0}; }

// Classes: which types, and whether the result is bool or the first operand is.
template <class T> struct TypeIs {
  static constexpr bool FLT = is_float<T>::value, CPX = sizeof(T) == 16, BOO = sizeof(T) == 1, INT = !FLT && !CPX && !BOO;
};
struct FLT { template <class T> static constexpr bool has = TypeIs<T>::FLT; static constexpr bool test = false, sel = false; };
struct FLTC { template <class T> static constexpr bool has = TypeIs<T>::FLT || TypeIs<T>::CPX; static constexpr bool test = false, sel = false; };
struct NUM { template <class T> static constexpr bool has = TypeIs<T>::FLT || TypeIs<T>::INT; static constexpr bool test = false, sel = false; };
struct ALL { template <class T> static constexpr bool has = !TypeIs<T>::BOO; static constexpr bool test = false, sel = false; };
struct INT { template <class T> static constexpr bool has = TypeIs<T>::INT; static constexpr bool test = false, sel = false; };
struct MOVE { template <class T> static constexpr bool has = true; static constexpr bool test = false, sel = false; };
struct CMP { template <class T> static constexpr bool has = !TypeIs<T>::CPX; static constexpr bool test = true, sel = false; };
struct CMPA { template <class T> static constexpr bool has = true; static constexpr bool test = true, sel = false; };
struct SEL { template <class T> static constexpr bool has = true; static constexpr bool test = false, sel = true; };

// One row of the table. `at` is a template so that texts a type cannot compile are never looked at.
#define ROW_AT(name, text)                                                                                    \
  template <class T, class A> FN auto name([[maybe_unused]] A a, [[maybe_unused]] T b, [[maybe_unused]] T c, \
                                           [[maybe_unused]] T p0, [[maybe_unused]] T p1, [[maybe_unused]] T p2) { return text; }
#define EXPR(name, cls, arity_, cost_, text) \
  struct Row_##name { using Class = cls; static constexpr int arity = arity_; static constexpr bool scaled = false; \
    ROW_AT(at, text) ROW_AT(plain, text) };
#define EXPR_SCALED(name, plain_, scaled_) \
  struct Row_##name { using Class = ALL; static constexpr int arity = 2; static constexpr bool scaled = true; \
    ROW_AT(at, scaled_) ROW_AT(plain, plain_) };
#include "kernels/exprs.def"
#undef EXPR
#undef EXPR_SCALED

template <class R> struct Divides { static constexpr bool value = false; };   // an integer zero in b is a fault
template <> struct Divides<Row_div_floor> { static constexpr bool value = true; };
template <> struct Divides<Row_div_trunc> { static constexpr bool value = true; };
template <> struct Divides<Row_remainder> { static constexpr bool value = true; };
template <> struct Divides<Row_fmod> { static constexpr bool value = true; };

template <class R, class T> void block(void* out, const void* const* in, int64_t n, const PointwiseParams* p) {
  using A = pick_t<R::Class::sel, bool8, T>;
  using O = pick_t<R::Class::test, bool8, T>;
  const A* a = (const A*)in[0];
  const T* b = R::arity > 1 ? (const T*)in[1] : nullptr;
  const T* c = R::arity > 2 ? (const T*)in[2] : nullptr;
  O* o = (O*)out;
  const T p0 = number<T>(p, 0), p1 = number<T>(p, 1), p2 = number<T>(p, 2);
  if constexpr (__is_same(R, Row_pow) && is_float<T>::value) {
    if (p->scalar >> 2 & 1) {   // a scalar exponent that is a product; as exact as pow and many times faster. Not the root: pow(-0, 0.5) is +0
      T e = n ? b[0] : T(0);
      if (e == T(2)) { _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) o[i] = a[i] * a[i]; return; }
      if (e == T(3)) { _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) o[i] = a[i] * a[i] * a[i]; return; }
      if (e == T(-1)) { _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) o[i] = T(1) / a[i]; return; }
    }
  }
  if constexpr (Divides<R>::value && TypeIs<T>::INT) {
    bool zero = false;
    for (int64_t i = 0; i < n; ++i) zero |= b[i] == 0;
    if (zero) fault(p->error, kFaultDivision, 0, 0, 0);
  }
#define LOOP(which) _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) \
    o[i] = (O)R::template which<T, A>(a[i], R::arity > 1 ? b[i] : T{}, R::arity > 2 ? c[i] : T{}, p0, p1, p2)
  if constexpr (R::scaled) {
    if (p->pf[0] == 1.0 && p->pi[0] == 1 && p->pf[3] == 0.0) { LOOP(plain); return; }
  }
  LOOP(at);
#undef LOOP
}

template <class R, class T> void kernel(const void* const* argv, uint64_t first, uint64_t count) {
  constexpr Compute C = ComputeOf<T>::value;
  static constexpr Signature signature = {block<R, T>, R::Class::test ? kCBool : C, {R::Class::sel ? kCBool : C, C, C}};
  drive(signature, argv, first, count);
}

template <class R, class T> constexpr flhal_host_kernel entry() {
  if constexpr (R::Class::template has<T>) return kernel<R, T>;
  else return nullptr;
}

#define EXPR(name, cls, arity, cost, text) entry<Row_##name, FLHAL_T>(),
#define EXPR_SCALED(name, plain, scaled) entry<Row_##name, FLHAL_T>(),
#define POINTWISE_TABLE(table) extern const flhal_host_kernel table[kExprs]; const flhal_host_kernel table[kExprs] = {
LEVEL_END
