// src/kernels/host/pointwise_f64.cc: the pointwise kernels whose compute type is double.
#include "kernels/host/pointwise.h"

#define FLHAL_T double
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_f64)
#include "kernels/exprs.def"
};
LEVEL_END
