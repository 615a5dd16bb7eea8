// src/kernels/levels.h: the tables each instruction set level fills, and which level this machine gets.
#pragma once

#include <flhal/plugin.h>

#include "kernels/params.h"

namespace flhal::kernels {

enum Expr : uint16_t {
#define EXPR(name, cls, arity, cost, text) kExpr_##name,
#define EXPR_SCALED(name, plain, scaled) kExpr_##name,
#include "kernels/exprs.def"
#undef EXPR
#undef EXPR_SCALED
  kExprs
};

// One element of `src` (kind `from`) converted to `to`, as PyTorch casts. dst has room for 16 bytes.
using ConvertOne = void (*)(void* dst, Kind to, const void* src, Kind from);

// Kernels that are not pointwise: rows of named.def.
enum Named : uint16_t {
#define NAMED(name) kNamed_##name,
#include "kernels/named.def"
#undef NAMED
  kNameds
};

// What one level offers. A null function does not exist for that type.
struct Level {
  const char* name;
  const flhal_host_kernel* pointwise[kComputes];   // [compute][expr]
  flhal_host_kernel copy_raw[5];                   // element of 1, 2, 4, 8, 16 bytes: dst and src of one type
  ConvertOne convert_one;
  const flhal_host_kernel* named;                  // [Named]
};

const Level& level();                              // the best this machine runs; resolved once
// Tests: run with another level ("base", "v3", "v4"; nullptr = best). False when the machine lacks it.
bool level_force(const char* name);

}  // namespace flhal::kernels
