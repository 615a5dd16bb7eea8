// flhal/scalars.h: the few scalars that the application ABI and the vendor ABI share. Nothing else is shared.
#ifndef FLHAL_SCALARS_H
#define FLHAL_SCALARS_H

#include <stdint.h>

typedef int32_t flhal_status;   // see status.h
typedef uint32_t flhal_dtype;   // DLPack's triple: code | bits << 8 | lanes << 16

#include <flhal/status.h>

#define FLHAL_DTYPE(code, bits) ((uint32_t)(code) | ((uint32_t)(bits) << 8) | (1u << 16))
#define FLHAL_DTYPE_CODE(t) ((t) & 0xffu)
#define FLHAL_DTYPE_BYTES(t) ((((t) >> 8) & 0xffu) / 8u * ((t) >> 16))
#define FLHAL_I8   FLHAL_DTYPE(0, 8)
#define FLHAL_I16  FLHAL_DTYPE(0, 16)
#define FLHAL_I32  FLHAL_DTYPE(0, 32)
#define FLHAL_I64  FLHAL_DTYPE(0, 64)
#define FLHAL_U8   FLHAL_DTYPE(1, 8)
#define FLHAL_U16  FLHAL_DTYPE(1, 16)
#define FLHAL_U32  FLHAL_DTYPE(1, 32)
#define FLHAL_U64  FLHAL_DTYPE(1, 64)
#define FLHAL_F16  FLHAL_DTYPE(2, 16)
#define FLHAL_F32  FLHAL_DTYPE(2, 32)
#define FLHAL_F64  FLHAL_DTYPE(2, 64)
#define FLHAL_BF16 FLHAL_DTYPE(4, 16)
#define FLHAL_C32  FLHAL_DTYPE(5, 32)    // two halves
#define FLHAL_C64  FLHAL_DTYPE(5, 64)    // two floats
#define FLHAL_C128 FLHAL_DTYPE(5, 128)   // two doubles
#define FLHAL_BOOL FLHAL_DTYPE(6, 8)
#define FLHAL_F8_E4M3FN   FLHAL_DTYPE(10, 8)
#define FLHAL_F8_E4M3FNUZ FLHAL_DTYPE(11, 8)
#define FLHAL_F8_E5M2     FLHAL_DTYPE(12, 8)
#define FLHAL_F8_E5M2FNUZ FLHAL_DTYPE(13, 8)

#endif  // FLHAL_SCALARS_H
