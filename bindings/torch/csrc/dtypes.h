// csrc/dtypes.h: torch's scalar types as flhal's, and back.
#pragma once

#include <c10/core/ScalarType.h>
#include <flhal/scalars.h>

#include <array>

namespace torch_fl {

namespace detail {
constexpr std::array<flhal_dtype, static_cast<size_t>(c10::ScalarType::NumOptions)> make_dtypes() {
  std::array<flhal_dtype, static_cast<size_t>(c10::ScalarType::NumOptions)> t{};
  auto set = [&](c10::ScalarType s, flhal_dtype d) { t[static_cast<size_t>(s)] = d; };
  set(c10::ScalarType::Byte, FLHAL_U8);
  set(c10::ScalarType::Char, FLHAL_I8);
  set(c10::ScalarType::Short, FLHAL_I16);
  set(c10::ScalarType::Int, FLHAL_I32);
  set(c10::ScalarType::Long, FLHAL_I64);
  set(c10::ScalarType::UInt16, FLHAL_U16);
  set(c10::ScalarType::UInt32, FLHAL_U32);
  set(c10::ScalarType::UInt64, FLHAL_U64);
  set(c10::ScalarType::Half, FLHAL_F16);
  set(c10::ScalarType::Float, FLHAL_F32);
  set(c10::ScalarType::Double, FLHAL_F64);
  set(c10::ScalarType::BFloat16, FLHAL_BF16);
  set(c10::ScalarType::ComplexHalf, FLHAL_C32);
  set(c10::ScalarType::ComplexFloat, FLHAL_C64);
  set(c10::ScalarType::ComplexDouble, FLHAL_C128);
  set(c10::ScalarType::Bool, FLHAL_BOOL);
  set(c10::ScalarType::Float8_e4m3fn, FLHAL_F8_E4M3FN);
  set(c10::ScalarType::Float8_e4m3fnuz, FLHAL_F8_E4M3FNUZ);
  set(c10::ScalarType::Float8_e5m2, FLHAL_F8_E5M2);
  set(c10::ScalarType::Float8_e5m2fnuz, FLHAL_F8_E5M2FNUZ);
  return t;
}
inline constexpr auto kDtypes = make_dtypes();
}  // namespace detail

// 0 for types that flhal does not know (quantized, sub-byte, ...).
constexpr flhal_dtype flhal_dtype_of(c10::ScalarType type) { return detail::kDtypes[static_cast<size_t>(type)]; }

}  // namespace torch_fl
