// src/kernels/host/pointwise_c128.cc: the pointwise kernels whose compute type is complex128.
#include "kernels/host/pointwise.h"

#define FLHAL_T complex128
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_c128)
#include "kernels/exprs.def"
};
LEVEL_END
