// src/dispatch/opset/opset.cc: one index over the families' rows.
#include "dispatch/opset/opset.h"

#include <array>

namespace flhal::opset {
namespace {

struct Index {
  std::array<const OpDef*, kMaxOpNumber> by_number{};
  Index() {
    for (uint32_t f = 0; f < kFamilies; ++f)
      for (const OpDef& d : family_rows(f)) by_number[d.number] = &d;
  }
};
const Index& index() {
  static const Index* all = new Index;   // never destroyed: calls may come while the process ends
  return *all;
}

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

const OpDef* find(uint32_t number) { return number < kMaxOpNumber ? index().by_number[number] : nullptr; }

const OpDef* find(std::string_view name) {
  for (uint32_t f = 0; f < kFamilies; ++f)
    for (const OpDef& d : family_rows(f)) if (name == d.name) return &d;
  return nullptr;
}

}  // namespace flhal::opset
