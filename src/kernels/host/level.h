// src/kernels/host/level.h: opens the namespace of the instruction set level this file is compiled for.
//
// Every function below must lie in that namespace (LEVEL_BEGIN .. LEVEL_END), else two levels would define it twice and
// the linker could keep the one the machine cannot run.
#pragma once

#include <flhal/plugin.h>

#include <stdint.h>

#include "kernels/levels.h"
#include "kernels/params.h"

#define LEVEL_BEGIN namespace flhal::kernels::FLHAL_LEVEL {
#define LEVEL_END }

#if defined(FLHAL_LEVEL_v4)
#define FLHAL_VECTOR_BYTES 64
#elif defined(FLHAL_LEVEL_v3)
#define FLHAL_VECTOR_BYTES 32
#else
#define FLHAL_VECTOR_BYTES 16
#endif
