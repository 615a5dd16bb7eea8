// src/kernels/host/pointwise_f32.cc: the pointwise kernels whose compute type is float.
#include "kernels/host/pointwise.h"

#define FLHAL_T float
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_f32)
#include "kernels/exprs.def"
};
LEVEL_END
