// src/kernels/prelude/opencl.h: the primitives of the kernel texts and expressions, for the dialect "opencl-c-1.2".
//
// The rules are those of prelude/host.h. A module has one compute type, so nothing is overloaded: the composer defines
// COMPUTE (one of the C_* below), FAT (1: a work-item takes a contiguous chunk; 0: one unit), FP64 (1 where double occurs).
// Memory arguments are the bases of slabs; byte offsets come in `at`.
#define C_F32 0
#define C_F64 1
#define C_I64 2
#define C_I32 3
#define C_BOOL 4
#define C_RAW 5
#if FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF   // a*b+c is rounded twice unless the text says mad or FUSES, as on the host

#define FN static inline __attribute__((always_inline))   // a call in a loop stops its vectors
#define GENERIC FN
#define GLOBAL
// Clang prefers registers of 32 bytes on processors that have 64: LONG_VECTORS on a kernel allows them, IVDEP asks for them.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"         // loops that stay as they are need no warning
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
#if defined(__clang__) && VECTOR_BYTES >= 64
#define LONG_VECTORS __attribute__((min_vector_width(512)))
#if COMPUTE == C_F32 || COMPUTE == C_I32
#define IVDEP _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#elif COMPUTE == C_F64 || COMPUTE == C_I64
#define IVDEP _Pragma("clang loop vectorize(assume_safety) vectorize_width(8)")
#endif
#else
#define LONG_VECTORS
#endif
#ifndef IVDEP
#ifdef __clang__
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP
#endif
#endif
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef uchar bool8;
typedef __global uchar* MEMORY;
typedef struct { long at[8]; } OFFSETS;         // [7] is the place for faults, [6] the call's number

#if COMPUTE == C_F32
typedef float T;
typedef uint UT;
#define IS_FLOAT 1
#define NUMBER(bits) as_float((int)(bits))      // an attribute: the composer narrowed it
#elif COMPUTE == C_F64
typedef double T;
typedef ulong UT;
#define IS_FLOAT 1
#define NUMBER(bits) as_double((long)(bits))
#elif COMPUTE == C_I64
typedef long T;
typedef ulong UT;
#elif COMPUTE == C_I32
typedef int T;
typedef uint UT;
#elif COMPUTE == C_BOOL
typedef uchar T;
typedef uchar UT;
#else
typedef RAW_TYPE T;
#endif
#define T(x) ((T)(x))

FN long min_of(long a, long b) { return a < b ? a : b; }
FN long max_of(long a, long b) { return a > b ? a : b; }
#define float_bits(f) as_int(f)
#define bits_float(i) as_float(i)
#define sqrt_of(x) sqrt(x)

// --- the first fault: code, dimension, index, size, number of the call; see KernelError -------------------------------------------
FN void fault(volatile __global uint* e, long call, uint code, int dim, long index, long size) {
  if (atomic_cmpxchg(e, 0u, code) != 0u) return;
  e[1] = (uint)dim;
  ((volatile __global long*)e)[1] = index;
  ((volatile __global long*)e)[2] = size;
  ((volatile __global long*)e)[3] = call;
}
#define FAULT_INDEX 1
#define FAULT_DIVISION 2

// --- halves: by bits where lanes are cores (the built-in is a call there and stops vectors) --------------------------------
FN float widen_half(ushort h) {
  uint w = (uint)h << 16, sign = w & 0x80000000u, two_w = w + w;
  float normal = as_float((two_w >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  float tiny = as_float((two_w >> 17) | (126u << 23)) - 0.5f;
  return as_float(sign | as_uint(two_w < (1u << 27) ? tiny : normal));
}
#if FAT
FN ushort narrow_half(float f) {
  float base = (fabs(f) * 0x1.0p+112f) * 0x1.0p-110f;
  uint w = as_uint(f), two_w = w + w, sign = w & 0x80000000u, bias = two_w & 0xff000000u;
  if (bias < 0x71000000u) bias = 0x71000000u;
  base = as_float((bias >> 1) + 0x07800000u) + base;
  uint b = as_uint(base), mantissa = ((b >> 13) & 0x7c00u) + (b & 0xfffu);
  return (ushort)((sign >> 16) | (two_w > 0xff000000u ? 0x7e00u : mantissa));
}
#define get_f16(m, o) widen_half(*(__global const ushort*)((m) + (o)))
#define put_f16(m, o, f) (*(__global ushort*)((m) + (o)) = narrow_half(f))
#else
#define get_f16(m, o) vload_half(0, (__global const half*)((m) + (o)))
#define put_f16(m, o, f) vstore_half_rte(f, 0, (__global half*)((m) + (o)))
#endif
FN ushort narrow_bf16(float f) {
  uint u = as_uint(f);
  return (ushort)(f != f ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// --- memory of any kind to and from the compute type; the casting rules of host/convert.cc -----------------------------------
#define GET(type, m, o) (*(__global const type*)((m) + (o)))
#define PUT(type, m, o, v) (*(__global type*)((m) + (o)) = (v))
#if COMPUTE == C_RAW
#define load_raw(m, o) GET(T, m, o)
#define store_raw(m, o, v) PUT(T, m, o, v)
#else
#if COMPUTE == C_BOOL   // anything that is not zero; NaN too
#define load_i8(m, o) T(GET(char, m, o) != 0)
#define load_i16(m, o) T(GET(short, m, o) != 0)
#define load_i32(m, o) T(GET(int, m, o) != 0)
#define load_i64(m, o) T(GET(long, m, o) != 0)
#define load_u8(m, o) T(GET(uchar, m, o) != 0)
#define load_u16(m, o) T(GET(ushort, m, o) != 0)
#define load_u32(m, o) T(GET(uint, m, o) != 0)
#define load_u64(m, o) T(GET(ulong, m, o) != 0)
#define load_bool(m, o) T(GET(uchar, m, o) != 0)
#define load_f32(m, o) T(GET(float, m, o) != 0)
#define load_f64(m, o) T(GET(double, m, o) != 0)
#define load_f16(m, o) T((GET(ushort, m, o) & 0x7fff) != 0)
#define load_bf16(m, o) T((GET(ushort, m, o) & 0x7fff) != 0)
#else
#define load_i8(m, o) T(GET(char, m, o))
#define load_i16(m, o) T(GET(short, m, o))
#define load_i32(m, o) T(GET(int, m, o))
#define load_i64(m, o) T(GET(long, m, o))
#define load_u8(m, o) T(GET(uchar, m, o))
#define load_u16(m, o) T(GET(ushort, m, o))
#define load_u32(m, o) T(GET(uint, m, o))
#define load_u64(m, o) T(GET(ulong, m, o))
#define load_bool(m, o) T(GET(uchar, m, o) != 0)
#endif
#if IS_FLOAT
#define load_f16(m, o) T(get_f16(m, o))
#define load_bf16(m, o) T(as_float((uint)GET(ushort, m, o) << 16))
#define load_f32(m, o) T(GET(float, m, o))
#define load_f64(m, o) T(GET(double, m, o))
FN int int32_of(T x) { return x >= T(-2147483648.0f) && x < T(2147483648.0f) ? (int)x : INT_MIN; }
FN long int64_of(T x) { return x >= T(-9223372036854775808.0f) && x < T(9223372036854775808.0f) ? (long)x : LONG_MIN; }
FN ulong uint64_of(T x) {
  return x >= T(9223372036854775808.0f) && x < T(18446744073709551616.0f) ? (ulong)x : (ulong)int64_of(x);
}
#else   // an integer that a float is converted to: as above, through float or double
#if COMPUTE != C_BOOL
#define load_f16(m, o) T(int64_of(get_f16(m, o)))
#define load_bf16(m, o) T(int64_of(as_float((uint)GET(ushort, m, o) << 16)))
#define load_f32(m, o) T(int64_of(GET(float, m, o)))
#define load_f64(m, o) T(int64_from(GET(double, m, o)))
#endif
FN long int64_of(float x) { return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (long)x : LONG_MIN; }
#if FP64
FN long int64_from(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (long)x : LONG_MIN; }
#endif
FN int int32_of(T x) { return (int)x; }
FN ulong uint64_of(T x) { return (ulong)x; }
#define int64_of_value(x) ((long)(x))
#endif
#if IS_FLOAT
#define int64_of_value(x) int64_of(x)
#endif
#define store_i8(m, o, v) PUT(char, m, o, (char)int32_of(v))
#define store_i16(m, o, v) PUT(short, m, o, (short)int32_of(v))
#define store_i32(m, o, v) PUT(int, m, o, int32_of(v))
#define store_i64(m, o, v) PUT(long, m, o, int64_of_value(v))
#define store_u8(m, o, v) PUT(uchar, m, o, (uchar)int64_of_value(v))
#define store_u16(m, o, v) PUT(ushort, m, o, (ushort)int64_of_value(v))
#define store_u32(m, o, v) PUT(uint, m, o, (uint)int64_of_value(v))
#define store_u64(m, o, v) PUT(ulong, m, o, uint64_of(v))
#define store_f16(m, o, v) put_f16(m, o, (float)(v))
#define store_bf16(m, o, v) PUT(ushort, m, o, narrow_bf16((float)(v)))
#define store_f32(m, o, v) PUT(float, m, o, (float)(v))
#define store_f64(m, o, v) PUT(double, m, o, (double)(v))
#define store_bool(m, o, v) PUT(uchar, m, o, (uchar)((v) != 0))
#endif

// A host scalar comes as its bytes.
#if COMPUTE == C_RAW
#define value_raw(v) RAW_VALUE(v)
#else
#if COMPUTE == C_BOOL
#define value_i8(v) T(((char)(v).x) != 0)
#define value_i16(v) T(((short)(v).x) != 0)
#define value_i32(v) T(((int)(v).x) != 0)
#define value_i64(v) T(((v).x) != 0)
#define value_u8(v) T(((uchar)(v).x) != 0)
#define value_u16(v) T(((ushort)(v).x) != 0)
#define value_u32(v) T(((uint)(v).x) != 0)
#define value_u64(v) T(((v).x) != 0)
#define value_bool(v) T(((uchar)(v).x) != 0)
#define value_f32(v) T((as_float((uint)(v).x)) != 0)
#define value_f64(v) T((as_double((v).x)) != 0)
#define value_f16(v) T((((ushort)(v).x & 0x7fff)) != 0)
#define value_bf16(v) T((((ushort)(v).x & 0x7fff)) != 0)
#else
#define value_i8(v) T((char)(v).x)
#define value_i16(v) T((short)(v).x)
#define value_i32(v) T((int)(v).x)
#define value_i64(v) T((long)(v).x)
#define value_u8(v) T((uchar)(v).x)
#define value_u16(v) T((ushort)(v).x)
#define value_u32(v) T((uint)(v).x)
#define value_u64(v) T((v).x)
#define value_bool(v) T((uchar)(v).x != 0)
#if IS_FLOAT
#define value_f16(v) T(widen_half((ushort)(v).x))
#define value_bf16(v) T(as_float((uint)(v).x << 16))
#define value_f32(v) T(as_float((uint)(v).x))
#define value_f64(v) T(as_double((v).x))
#else
#define value_f16(v) T(int64_of(widen_half((ushort)(v).x)))
#define value_bf16(v) T(int64_of(as_float((uint)(v).x << 16)))
#define value_f32(v) T(int64_of(as_float((uint)(v).x)))
#define value_f64(v) T(int64_from(as_double((v).x)))
#endif
#endif
#endif
