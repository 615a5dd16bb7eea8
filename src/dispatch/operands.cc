// src/dispatch/operands.cc: rare operands: absent ones, host scalars, calls with many of them, outputs that meet inputs.
#include <cstring>

#include "dispatch/call_refusals.h"
#include "dispatch/layout.h"
#include "dispatch/opset/rule_text.h"
#include "dispatch/vendor_ops.h"

namespace flhal {

Status take_special_operand(const PreparedCall& p, uint32_t i, const flhal_tensor& t, flhal_tensor_v1* out) {
  uint32_t n_out = p.source->n_outputs;
  bool vendor = is_vendor_op(*p.def);
  uint32_t slot = i < n_out ? i : std::min<uint32_t>(p.def->n_outputs + (i - n_out), opset::kMaxOperands - 1);
  if (t.flags & FLHAL_TENSOR_ABSENT) {
    if (!vendor && !p.def->operands[slot].optional)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {} is absent, but not optional", operand_name(p, i));
    std::memset(out, 0, sizeof *out);
    out->flags = FLHAL_TENSOR_ABSENT;
    return FLHAL_OK;
  }
  if (i < n_out || (!p.def->pointwise && !vendor) || t.rank != 0 || t.address == 0)
    return fail(FLHAL_E_INVALID,
                "flhal_op_run: {} is a host scalar (rank {}, address {:#x}); only inputs of rank 0 of pointwise ops can "
                "be, and the address is a host pointer",
                operand_name(p, i), t.rank, t.address);
  out->address = t.address;
  out->memory = nullptr;
  out->offset = 0;
  out->extent = FLHAL_DTYPE_BYTES(t.dtype);
  return FLHAL_OK;
}

Status make_room(PreparedCall& p) {
  const flhal_op_call& call = *p.source;
  auto more = [&]() -> PreparedCall::More& {
    if (!p.more) p.more = std::make_unique<PreparedCall::More>();
    return *p.more;
  };
  if (p.n_tensors > kInlineTensors) {
    more().tensors = std::make_unique_for_overwrite<flhal_tensor_v1[]>(p.n_tensors);
    p.tensors = p.more->tensors.get();
  }
  if (call.n_attrs == 0) {
    if (p.n_tensors > kInlineTensors) {
      more().words = std::make_unique_for_overwrite<uint64_t[]>(3 + (p.n_tensors + 1) / 2);
      p.words = p.more->words.get();
    }
    return FLHAL_OK;
  }
  constexpr uint32_t kLimit = 64;
  if (call.n_attrs > kLimit || call.attr_stride < sizeof(flhal_attr))
    return fail(FLHAL_E_INVALID, "flhal_op_run: {}: n_attrs {} and attr_stride {}; at most {} and at least {} are needed",
                p.def->name, call.n_attrs, call.attr_stride, kLimit, sizeof(flhal_attr));
  p.attr_copies = p.attrs;
  if (call.n_attrs > opset::kMaxAttrs) {
    more().attrs = std::make_unique_for_overwrite<flhal_attr_v1[]>(call.n_attrs);
    p.attr_copies = p.more->attrs.get();
  }
  uint64_t words = 3 + (p.n_tensors + 1) / 2;
  for (uint32_t i = 0; i < call.n_attrs; ++i) {
    auto& a = *reinterpret_cast<const flhal_attr*>(reinterpret_cast<const char*>(call.attrs) +
                                                   uint64_t(i) * call.attr_stride);
    uint64_t more = a.kind == FLHAL_ATTR_STRING ? (uint64_t(a.count) + 7) / 8 : a.count;
    if (more > 4096)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: attribute {:#x} has {} values; at most 4096 are possible",
                  p.def->name, a.key, a.count);
    words += 3 + more;
  }
  if (words > kInlineWords || p.n_tensors > kInlineTensors) {
    more().words = std::make_unique_for_overwrite<uint64_t[]>(words);
    p.words = p.more->words.get();
  }
  return FLHAL_OK;
}

// An output that is an input, same view: allowed where the row says so. Any other overlap: the input is copied first.
Status resolve_aliases(PreparedCall& p, uint64_t* alias) {
  uint32_t n_out = p.source->n_outputs;
  for (uint32_t o = 0; o < n_out; ++o) {
    const flhal_tensor& out = tensor_of(*p.source, o);
    uint64_t out_bytes = p.tensors[o].extent;
    if ((out.flags & FLHAL_TENSOR_ABSENT) || out_bytes == 0) continue;
    for (uint32_t i = o + 1; i < p.n_tensors; ++i) {
      const flhal_tensor& in = tensor_of(*p.source, i);
      uint64_t in_bytes = p.tensors[i].extent;
      if ((in.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR)) || in_bytes == 0) continue;
      if (in.address >= out.address + out_bytes || out.address >= in.address + in_bytes) continue;
      bool exact = in.address == out.address && in.dtype == out.dtype && in.rank == out.rank &&
                   same_view(in.sizes, in.strides, out.sizes, out.strides, in.rank);
      if (i < n_out) {
        if (exact || may_share_elements(out, in))
          return fail(FLHAL_E_INVALID, "flhal_op_run: {} and {} share memory; give each output its own", operand_name(p, o),
                      operand_name(p, i));
        continue;
      }
      uint32_t input = i - n_out;
      if (exact && p.def->alias == opset::Alias::kAnyInput && input < 32) {
        *alias |= 1ull << input;
      } else if (exact || may_share_elements(out, in)) {
        if (input >= 64)
          return fail(FLHAL_E_UNSUPPORTED, "flhal_op_run: {} overlaps an output; core copies only the first 64 inputs",
                      operand_name(p, i));
        p.partial_inputs |= 1ull << input;
      }
    }
  }
  return FLHAL_OK;
}

flhal_dtype default_compute_dtype(const PreparedCall& p) {
  for (uint32_t i = p.source->n_outputs; i < p.n_tensors; ++i) {
    const flhal_tensor& t = tensor_of(*p.source, i);
    if (!(t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR))) return t.dtype;
  }
  for (uint32_t i = 0; i < p.source->n_outputs; ++i) {
    const flhal_tensor& t = tensor_of(*p.source, i);
    if (!(t.flags & FLHAL_TENSOR_ABSENT)) return t.dtype;
  }
  return FLHAL_F32;
}

}  // namespace flhal
