// src/dispatch/attributes.cc: attributes of a call: their part of the key, and their checks when a plan is made.
//
// The table alone says which are dynamic: flags are set here from it, so that no plugin takes alpha for a constant
// because a caller forgot a flag.
#include <cstring>

#include "dispatch/call_refusals.h"
#include "dispatch/vendor_ops.h"

namespace flhal {
namespace {

constexpr uint64_t kDynamicBit = 1ull << 63;

const opset::Attr* row_of_key(const opset::OpDef& def, uint32_t key) {
  uint32_t number = key & 0xff;
  return key >> 8 == def.number && number - 1 < def.n_attrs ? &def.attrs[number - 1] : nullptr;
}

const flhal_attr& attr_of(const flhal_op_call& call, uint32_t i) {
  return *reinterpret_cast<const flhal_attr*>(reinterpret_cast<const char*>(call.attrs) +
                                              uint64_t(i) * call.attr_stride);
}

}  // namespace

Status take_attributes(PreparedCall& p) {
  const flhal_op_call& call = *p.source;
  uint64_t* w = p.words + p.n_words;
  for (uint32_t i = 0; i < call.n_attrs; ++i) {
    const flhal_attr& a = attr_of(call, i);
    flhal_attr_v1& copy = p.attr_copies[i];
    std::memcpy(&copy, &a, sizeof copy);
    const opset::Attr* row = row_of_key(*p.def, a.key);
    if (__builtin_expect(!row && !is_vendor_op(*p.def), 0))
      return fail(FLHAL_E_INVALID, "flhal_op_run: {} has no attribute of key {:#x}; the keys are in flhal/ops.h",
                  p.def->name, a.key);
    if (__builtin_expect(a.kind >= FLHAL_ATTR_INTS && a.v.p == nullptr, 0))
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {:#x} points to nothing", p.def->name, a.key);
    bool dynamic = row ? row->dynamic : (a.flags & FLHAL_ATTR_DYNAMIC) != 0;
    copy.flags = dynamic ? FLHAL_ATTR_DYNAMIC : 0;
    uint64_t word = uint64_t(a.key) | uint64_t(a.kind) << 32;
    if (dynamic) {
      *w++ = word | kDynamicBit;
      continue;
    }
    *w++ = word;
    switch (a.kind) {
      case FLHAL_ATTR_INT:
      case FLHAL_ATTR_FLOAT:
        *w++ = static_cast<uint64_t>(a.v.i);
        break;
      case FLHAL_ATTR_COMPLEX:
        *w++ = static_cast<uint64_t>(a.v.i);
        std::memcpy(w++, &a.imag, 8);
        break;
      case FLHAL_ATTR_INTS:
      case FLHAL_ATTR_FLOATS:
        *w++ = a.count;
        std::memcpy(w, a.v.p, uint64_t(a.count) * 8);
        w += a.count;
        break;
      case FLHAL_ATTR_STRING:
        *w++ = a.count;
        w[a.count / 8] = 0;
        std::memcpy(w, a.v.p, a.count);
        w += (uint64_t(a.count) + 7) / 8;
        break;
      default:
        return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {:#x} has the unknown kind {}", p.def->name, a.key,
                    a.kind);
    }
  }
  p.n_words = static_cast<uint32_t>(w - p.words);
  p.call.attr_stride = sizeof(flhal_attr_v1);
  return FLHAL_OK;
}

Status check_attributes(const PreparedCall& p) {
  const flhal_op_call& call = *p.source;
  if (is_vendor_op(*p.def)) return FLHAL_OK;
  uint32_t given = 0;
  for (uint32_t i = 0; i < call.n_attrs; ++i) {
    const flhal_attr& a = attr_of(call, i);
    const opset::Attr& row = *row_of_key(*p.def, a.key);   // take_attributes has refused unknown ones
    uint32_t bit = 1u << row.number;
    if (given & bit) return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {} is given twice", p.def->name, row.name);
    given |= bit;
    auto is_number = [](uint32_t kind) { return kind == FLHAL_ATTR_INT || kind == FLHAL_ATTR_FLOAT; };
    bool kind_fits = a.kind == row.kind || (row.kind == FLHAL_ATTR_FLOAT && is_number(a.kind)) ||
                     (row.kind == FLHAL_ATTR_FLOAT && row.dynamic && a.kind == FLHAL_ATTR_COMPLEX);
    if (!kind_fits)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {} has kind {}; kind {} is needed", p.def->name, row.name,
                  a.kind, row.kind);
    if (row.kind == FLHAL_ATTR_INTS && a.count != row.count)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {} has {} values; {} are needed", p.def->name, row.name,
                  a.count, row.count);
  }
  for (uint32_t k = 0; k < p.def->n_attrs; ++k)
    if (p.def->attrs[k].required && !(given >> p.def->attrs[k].number & 1))
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {} is needed", p.def->name, p.def->attrs[k].name);
  return FLHAL_OK;
}

}  // namespace flhal
