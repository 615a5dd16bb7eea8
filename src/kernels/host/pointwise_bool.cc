// src/kernels/host/pointwise_bool.cc: the pointwise kernels whose compute type is bool8.
#include "kernels/host/pointwise.h"

#define FLHAL_T bool8
LEVEL_BEGIN
POINTWISE_TABLE(pointwise_bool)
#include "kernels/exprs.def"
};
LEVEL_END
