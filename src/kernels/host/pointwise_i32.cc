// src/kernels/host/pointwise_i32.cc: the pointwise kernels whose compute type is int32_t.
#include "kernels/host/pointwise.h"

#define FLHAL_T int32_t
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_i32)
#include "kernels/exprs.def"
};
LEVEL_END
