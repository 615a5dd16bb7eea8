// src/kernels/host/convert.h: runs of memory of any kind, to and from the compute types.
#pragma once

#include "kernels/host/level.h"

LEVEL_BEGIN

// n0 elements with byte stride s0, n1 times with byte stride s1, to or from dense compute values.
using Load = void (*)(void* dst, const char* src, int64_t n0, int64_t s0, int64_t n1, int64_t s1);
using Store = void (*)(char* dst, const void* src, int64_t n0, int64_t s0, int64_t n1, int64_t s1);
extern const Load load_table[kKinds][kComputes];
extern const Store store_table[kKinds][kComputes];

LEVEL_END
