// src/dispatch/opset/call_view.h: how rules read a call: operands by slot, attributes with their defaults.
#pragma once

#include "dispatch/opset/op_def.h"

namespace flhal::opset {

struct CallView {
  const OpDef& def;
  const flhal_op_call& call;

  const flhal_tensor& tensor(uint32_t i) const {
    return *reinterpret_cast<const flhal_tensor*>(reinterpret_cast<const char*>(call.tensors) +
                                                  uint64_t(i) * call.tensor_stride);
  }
  const flhal_tensor& out(uint32_t i) const { return tensor(i); }
  const flhal_tensor& in(uint32_t i) const { return tensor(call.n_outputs + i); }
  uint32_t n_in() const { return call.n_inputs; }
  static bool given(const flhal_tensor& t) { return (t.flags & FLHAL_TENSOR_ABSENT) == 0; }

  // Attribute of table slot `slot`; nullptr when the call leaves it at its default.
  const flhal_attr* attr(uint32_t slot) const {
    uint32_t key = attr_key(def.number, def.attrs[slot].number);
    for (uint32_t i = 0; i < call.n_attrs; ++i) {
      auto* a = reinterpret_cast<const flhal_attr*>(reinterpret_cast<const char*>(call.attrs) +
                                                    uint64_t(i) * call.attr_stride);
      if (a->key == key) return a;
    }
    return nullptr;
  }
  int64_t integer(uint32_t slot) const {
    const flhal_attr* a = attr(slot);
    if (!a) return def.attrs[slot].default_int;
    if (a->kind != FLHAL_ATTR_FLOAT) return a->v.i;
    const bool fits = a->v.f > -9e18 && a->v.f < 9e18;      // refused when a plan is made, like every other wrong kind
    return fits ? static_cast<int64_t>(a->v.f) : def.attrs[slot].default_int;
  }
  double number(uint32_t slot) const {
    const flhal_attr* a = attr(slot);
    if (!a) return def.attrs[slot].default_float;
    return a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
  }
  int64_t element(uint32_t slot, uint32_t i) const {
    const flhal_attr* a = attr(slot);
    // A malformed one reads as the default here; it is refused when a plan is made for it.
    bool readable = a && a->kind == FLHAL_ATTR_INTS && i < a->count && a->v.p;
    return readable ? static_cast<const int64_t*>(a->v.p)[i] : def.attrs[slot].default_int;
  }
};

struct Inferred {
  struct Out {
    int64_t sizes[kMaxRank];
    uint32_t rank = 0;
    flhal_dtype dtype = 0;
    bool free = false;       // the caller chooses the sizes (fill, random)
  } outs[3];
};

}  // namespace flhal::opset
