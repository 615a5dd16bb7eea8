// src/dispatch/opset/opset.cc: one index over the families' rows.
#include "dispatch/opset/opset.h"

namespace flhal::opset {

const OpDef* g_rows[kMaxOpNumber];

namespace {

// The rows are constants, so the order of initialisation does not matter; nothing is destroyed at exit.
[[maybe_unused]] const bool g_filled = [] {
  for (uint32_t f = 0; f < kFamilies; ++f)
    for (const OpDef& d : family_rows(f)) g_rows[d.number] = &d;
  return true;
}();

}  // namespace

Rows family_rows(uint32_t family) {
  switch (static_cast<Family>(family)) {
    case Family::kPointwise: return pointwise_rows();
    case Family::kReduce: return reduce_rows();
    case Family::kMatmul: return matmul_rows();
    case Family::kConv: return conv_rows();
    case Family::kNorm: return norm_rows();
    case Family::kIndex: return index_rows();
    case Family::kRandom: return random_rows();
    case Family::kCopy: return copy_rows();
  }
  return {nullptr, 0};
}

const char* family_name(Family family) {
  static const char* const names[] = {"pointwise", "reduce", "matmul", "conv", "norm", "index", "random", "copy"};
  return names[static_cast<uint32_t>(family)];
}

const OpDef* find(std::string_view name) {
  for (uint32_t f = 0; f < kFamilies; ++f)
    for (const OpDef& d : family_rows(f)) if (name == d.name) return &d;
  return nullptr;
}

uint32_t minor_needed(const OpDef& def, const flhal_attr_v1* attrs, uint32_t n_attrs) {
  uint32_t needed = def.since;
  for (uint32_t i = 0; i < n_attrs; ++i) {
    const uint32_t number = attrs[i].key & 0xff;
    if (number - 1 < def.n_attrs && def.attrs[number - 1].since > needed) needed = def.attrs[number - 1].since;
  }
  return needed;
}

}  // namespace flhal::opset
