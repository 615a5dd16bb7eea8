// src/dispatch/opset/opset.h: the whole op set: finding rows.
#pragma once

#include <flhal/plugin.h>

#include <string_view>

#include "dispatch/opset/op_def.h"

namespace flhal::opset {

inline constexpr uint32_t kOpSetMinor = 0;   // grows when rows or attributes are added after the freeze: see OpDef::since

struct Rows {
  const OpDef* first;
  uint32_t count;
  const OpDef* begin() const { return first; }
  const OpDef* end() const { return first + count; }
};

// One per family, in its own file.
Rows pointwise_rows();
Rows reduce_rows();
Rows matmul_rows();
Rows conv_rows();
Rows norm_rows();
Rows index_rows();
Rows random_rows();
Rows copy_rows();

inline constexpr uint32_t kFamilies = 8;
Rows family_rows(uint32_t family);             // family < kFamilies, in the order of Family
const char* family_name(Family family);

extern const OpDef* g_rows[kMaxOpNumber];      // by number; filled before main
inline const OpDef* row_of(uint32_t number) { return number < kMaxOpNumber ? g_rows[number] : nullptr; }
const OpDef* find(std::string_view name);

// The op set minor that a plugin must know to be shown a call of `def` with these attributes.
uint32_t minor_needed(const OpDef& def, const flhal_attr_v1* attrs, uint32_t n_attrs);

}  // namespace flhal::opset
