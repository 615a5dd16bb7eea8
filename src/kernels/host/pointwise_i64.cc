// src/kernels/host/pointwise_i64.cc: the pointwise kernels whose compute type is int64_t.
#include "kernels/host/pointwise.h"

#define FLHAL_T int64_t
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_i64)
#include "kernels/exprs.def"
};
LEVEL_END
