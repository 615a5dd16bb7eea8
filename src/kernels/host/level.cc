// src/kernels/host/level.cc: the table of this instruction set level.
#include "kernels/host/level.h"

LEVEL_BEGIN

extern const flhal_host_kernel pointwise_f32[kExprs], pointwise_f64[kExprs], pointwise_i64[kExprs], pointwise_i32[kExprs],
    pointwise_bool[kExprs], pointwise_c128[kExprs], copy_raw_table[5];
void convert_one(void* dst, Kind to, const void* src, Kind from);

#define NAMED(name) void name(const void* const* argv, uint64_t first, uint64_t count);
#include "kernels/named.def"
#undef NAMED
static const flhal_host_kernel named_table[kNameds] = {
#define NAMED(name) name,
#include "kernels/named.def"
#undef NAMED
};

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)
extern const Level level_table;
const Level level_table = {
    .name = STRINGIFY(FLHAL_LEVEL),
    .pointwise = {pointwise_f32, pointwise_f64, pointwise_i64, pointwise_i32, pointwise_bool, pointwise_c128},
    .copy_raw = {copy_raw_table[0], copy_raw_table[1], copy_raw_table[2], copy_raw_table[3], copy_raw_table[4]},
    .convert_one = convert_one,
    .named = named_table,
};

LEVEL_END
