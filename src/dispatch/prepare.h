// src/dispatch/prepare.h: the one pass over a call that every flhal_op_run makes but for the plainest (hot_path.h).
//
// Idea: output 0 is looked at in full. An input of its dtype, sizes and strides, which most are, then needs only its own
// place and bounds; everything else goes through take_operand, out of line (prepared_call.cc): the fewer values are alive
// in the loop, the fewer are spilled, and spills were half of its instructions. Figures: docs/why/dispatch.md.
#pragma once

#include <cstring>

#include "dispatch/call_refusals.h"
#include "dispatch/layout.h"
#include "dispatch/prepared_call.h"
#include "memory/address_map.h"

namespace flhal {

// What the pass knows of output 0, and gathers over the operands that take the general way.
struct Gathered {
  View first;
  uint64_t first_begin, first_end;   // bytes of output 0; equal when it has none
  uint32_t first_rank;               // kNoRank: nothing can be taken as "laid out as output 0"
  uint32_t outputs_with_elements;
  uint64_t reach;                    // or of all byte and element counts
  uint64_t addresses;                // or of all addresses
  bool malformed;                    // a dtype, layout or address; the sentence is found afterwards
  bool overlap;                      // a range meets output 0's
  bool empty_input;
};
inline constexpr uint32_t kNoRank = ~0u;

Status take_operand(PreparedCall& p, Gathered& g, uint32_t i, Prepare mode);   // any operand
// An operand that the address map does not know as it should: of a queued call that runs now, or the refusal.
[[gnu::cold]] Status take_kept_place(PreparedCall& p, uint32_t i, const flhal_tensor& t, uint64_t bytes);
Status finish_rarely(PreparedCall& p, Gathered& g, Prepare mode, bool check_overlap, uint64_t* alias);

inline constexpr uint64_t kCallHead = sizeof(flhal_op_call) | uint64_t(FLHAL_ST_OP_CALL) << 32;

inline uint32_t operand_code(flhal_dtype dtype, uint32_t rank, Layout layout, uint32_t flags) {
  return (dtype & 0xffff) | rank << 16 | static_cast<uint32_t>(layout) << 21 | (flags & FLHAL_TENSOR_STABLE) << 23;
}
inline void put_code(PreparedCall& p, uint32_t i, uint32_t code) {
  std::memcpy(reinterpret_cast<char*>(p.words + 2) + i * sizeof code, &code, sizeof code);
}
// dtype, rank and layout as one number.
inline uint64_t kind_of(const flhal_tensor& t) {
  static_assert(offsetof(flhal_tensor, rank) == offsetof(flhal_tensor, dtype) + 4);
  static_assert(offsetof(flhal_tensor, layout) == offsetof(flhal_tensor, dtype) + 6);
  uint64_t kind;
  std::memcpy(&kind, &t.dtype, sizeof kind);
  return kind;
}
inline uint32_t element_bytes(flhal_dtype dtype) { return (dtype >> 11) & 0x1f; }   // bits / 8
inline bool dtype_fits(flhal_dtype dtype) { return dtype >> 16 == 1 && element_bytes(dtype) != 0; }

inline void take_shape(flhal_tensor_v1& o, const flhal_tensor& t) {
  std::memcpy(&o.sizes, &t.sizes, sizeof t - offsetof(flhal_tensor, sizes));
}

// Place and bounds of an operand with elements. False: it is not where it must be.
[[gnu::always_inline]] inline bool take_place(flhal_tensor_v1& o, uint64_t address, uint64_t bytes,
                                              const Device* device) {
  Located place = AddressMap::locate(address);
  const Slab* slab = place.slab;
  if (__builtin_expect(!slab || slab->device != device || address - place.block_base + bytes > place.block_bytes, 0))
    return false;
  uint64_t device_address = slab->device_address;
  o.address = device_address ? device_address + place.offset : 0;
  o.memory = slab->memory;
  o.offset = place.offset;
  o.extent = bytes;
  return true;
}

[[gnu::always_inline]] inline Status prepare_inline(PreparedCall& p, Stream* stream, Device* device,
                                                    const flhal_op_call* call, Prepare mode) {
  uint64_t head;
  if (__builtin_expect(call == nullptr, 0)) return no_call();
  std::memcpy(&head, call, sizeof head);
  if (__builtin_expect(head != kCallHead || call->next, 0)) FLHAL_TRY(check_call_head(call));
  const opset::OpDef* def = opset::row_of(call->op);
  if (__builtin_expect(def == nullptr, 0)) FLHAL_TRY(find_unlisted_op(call, device, &def));
  const uint32_t n_out = call->n_outputs, n = n_out + call->n_inputs;
  const uint32_t stride = call->tensor_stride;
  if (__builtin_expect(n_out != def->n_outputs || call->n_inputs != def->n_inputs || n > kInlineTensors ||
                       stride < sizeof(flhal_tensor), 0))
    FLHAL_TRY(check_counts(*def, call));

  p.stream = stream;
  p.device = device;
  p.def = def;
  p.source = call;
  p.n_tensors = n;
  p.partial_inputs = 0;
  p.tensors = p.inline_tensors;
  p.words = p.inline_words;
  p.attr_copies = nullptr;
  if (__builtin_expect(n > kInlineTensors || call->n_attrs, 0)) FLHAL_TRY(make_room(p));

  // Output 0.
  const flhal_tensor& first = *call->tensors;
  const uint64_t first_address = first.address;
  const uint32_t element = element_bytes(first.dtype);
  Gathered g;
  g.addresses = 0;
  g.malformed = g.overlap = g.empty_input = false;
  uint64_t elements;
  if (__builtin_expect(mode == Prepare::kRun && (first.flags & ~FLHAL_TENSOR_STABLE) == 0 && first.layout == 0 &&
                       first.rank <= opset::kMaxRank && dtype_fits(first.dtype) &&
                       dense_view(first.sizes, first.strides, first.rank, &elements), 1)) {
    uint64_t bytes = elements * element;
    take_shape(*p.tensors, first);
    if (__builtin_expect(!take_place(*p.tensors, first_address, bytes, device), 0))
      FLHAL_TRY(take_kept_place(p, 0, first, bytes));
    g.first = {Layout::kDense, elements, elements};
    g.first_begin = first_address;
    g.first_end = first_address + bytes;
    g.first_rank = first.rank;
    g.reach = bytes | elements;
    g.outputs_with_elements = 1;
    put_code(p, 0, operand_code(first.dtype, first.rank, Layout::kDense, first.flags));
  } else {
    g.first = View{};
    g.first_begin = g.first_end = g.reach = 0;
    g.first_rank = kNoRank;
    g.outputs_with_elements = 0;
    FLHAL_TRY(take_operand(p, g, 0, mode));
  }

  // The rest.
  const uint64_t first_end = g.first_end, first_bytes = first_end - g.first_begin;
  const uint64_t alike = first_bytes && mode == Prepare::kRun ? kind_of(first) : ~0ull;
  const uint32_t rank = first.rank;
  const uint32_t code = operand_code(first.dtype, rank, g.first.layout, 0);
  uint64_t addresses = first_address;   // of the operands that are like output 0
  bool overlap = false;
  const flhal_tensor* t = &first;
  uint32_t i = 1;
  for (; i < n_out; ++i) FLHAL_TRY(take_operand(p, g, i, mode));
  t = &tensor_of(*call, n_out - 1);
  for (; i < n; ++i) {
    t = reinterpret_cast<const flhal_tensor*>(reinterpret_cast<const char*>(t) + stride);
    if (__builtin_expect(kind_of(*t) == alike && (t->flags & ~FLHAL_TENSOR_STABLE) == 0 &&
                         same_view(t->sizes, t->strides, first.sizes, first.strides, rank), 1)) {
      uint64_t address = t->address;
      if (__builtin_expect(!take_place(p.tensors[i], address, first_bytes, device), 0))
        FLHAL_TRY(take_kept_place(p, i, *t, first_bytes));
      take_shape(p.tensors[i], *t);
      addresses |= address;
      overlap |= address < first_end && first_address < address + first_bytes;
      put_code(p, i, code | (t->flags & FLHAL_TENSOR_STABLE) << 23);
    } else {
      FLHAL_TRY(take_operand(p, g, i, mode));
    }
  }
  put_code(p, n, 0);                    // the other half of the last word, or of one that is not used
  if (alike == ~0ull) addresses = 0;
  g.malformed |= (addresses & (element - 1ull)) != 0;
  uint64_t alias = 0;   // bit i: input i is an output, the same view
  overlap |= g.overlap;
  if (__builtin_expect(g.malformed || overlap || n_out > 1 || !def->pointwise, 0))
    FLHAL_TRY(finish_rarely(p, g, mode, overlap || n_out > 1, &alias));
  addresses |= g.addresses;

  take_prefix(p.call, *call);
  p.call.struct_size = sizeof(flhal_op_call_v1);
  p.call.next = nullptr;
  p.call.op = def->number < opset::kMaxOpNumber ? def->number : 0;   // 0: a vendor's op, known by name
  p.call.name = def->name;
  p.call.tensors = p.tensors;
  p.call.attrs = p.attr_copies;
  p.call.tensor_stride = sizeof(flhal_tensor_v1);
  p.call.alias = alias ? FLHAL_ALIAS_EXACT : FLHAL_ALIAS_NONE;
  p.call.flags = call->flags & ~kCallInner;
  p.call.reserved = 0;
  if (__builtin_expect(p.call.compute_dtype == 0, 0)) p.call.compute_dtype = default_compute_dtype(p);
  p.empty_output = g.outputs_with_elements == 0;
  p.empty_input = g.empty_input;

  uint64_t word0 = key_word0(def->number, n_out, p.call.compute_dtype, device->index);
  uint64_t word1 = key_word1(addresses, g.reach >> 31 != 0, alias, n, call->flags);
  p.words[0] = word0;
  p.words[1] = word1;
  p.n_words = 2 + (n + 1) / 2;
  if (__builtin_expect(call->n_attrs != 0, 0)) FLHAL_TRY(take_attributes(p));
  uint64_t hash = mix(mix(kHashSeed, word0), word1);
  for (uint32_t w = 2; w < p.n_words; ++w) hash = mix(hash, p.words[w]);
  p.hash = hash;
  return FLHAL_OK;
}

}  // namespace flhal
