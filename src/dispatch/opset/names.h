// src/dispatch/opset/names.h: words for what a row says, as header, JSON and reference page print them.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "dispatch/opset/op_def.h"

namespace flhal::opset {

inline const char* kind_name(uint16_t kind) {
  static const char* const names[] = {"", "int", "float", "complex", "ints", "floats", "string", "philox"};
  return names[kind];
}
inline const char* dtypes_name(Dtypes t) {
  static const char* const names[] = {"any", "numeric", "float", "integral", "real"};
  return names[static_cast<int>(t)];
}
inline const char* out_dtype_name(OutDtype t) {
  static const char* const names[] = {"compute", "bool", "int64", "input 0", "accumulate", "caller"};
  return names[static_cast<int>(t)];
}
inline const char* tolerance_name(Tolerance t) {
  static const char* const names[] = {"exact", "rounded", "transcendental", "accumulated"};
  return names[static_cast<int>(t)];
}
inline std::string number_text(double v) {
  if (std::isnan(v)) return "\"nan\"";
  if (std::isinf(v)) return v > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{}", v);
}
inline std::string default_text(const Attr& a) {
  if (a.required) return "";
  switch (a.kind) {
    case FLHAL_ATTR_INT: return fmt::format("{}", a.default_int);
    case FLHAL_ATTR_FLOAT: return number_text(a.default_float);
    case FLHAL_ATTR_INTS: return a.count == 2 ? fmt::format("[{0}, {0}]", a.default_int) : "[]";
    default: return "";
  }
}
}  // namespace flhal::opset
