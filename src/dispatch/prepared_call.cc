// src/dispatch/prepared_call.cc: the one pass over a call that every flhal_op_run makes.
//
// Cost: about 90 instructions for an operand of rank 4, of which the address lookup is 25. Refusals and rare forms are in
// call_refusals.cc and layout.cc, out of line.
#include "dispatch/prepared_call.h"

#include <cstring>

#include "dispatch/call_refusals.h"
#include "dispatch/layout.h"
#include "memory/address_map.h"

namespace flhal {
namespace {

using opset::OpDef;

constexpr uint64_t kCallHead = sizeof(flhal_op_call) | uint64_t(FLHAL_ST_OP_CALL) << 32;

inline uint32_t operand_code(flhal_dtype dtype, uint32_t rank, Layout layout, uint32_t flags) {
  return (dtype & 0xffff) | rank << 16 | static_cast<uint32_t>(layout) << 21 | (flags & FLHAL_TENSOR_STABLE) << 23;
}

// The class of a pointwise input that is not laid out as output 0.
inline Layout pointwise_layout(const View& view, const flhal_tensor& t, const flhal_tensor& out) {
  bool same = t.rank == out.rank;
  for (uint32_t d = 0; same && d < t.rank; ++d) same = t.sizes[d] == out.sizes[d];
  if (view.layout == Layout::kPermuted) return same ? Layout::kStrided : Layout::kStridedBroadcast;
  if (same) return view.layout;
  if (view.elements == 1) return Layout::kOne;
  return view.layout == Layout::kDense ? Layout::kDenseBroadcast : Layout::kStridedBroadcast;
}

// numpy's rule for one input against output 0.
inline bool broadcasts(const flhal_tensor& t, const flhal_tensor& out) {
  if (t.rank > out.rank) return false;
  uint32_t skip = out.rank - t.rank;
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != out.sizes[skip + d] && t.sizes[d] != 1) return false;
  return true;
}

}  // namespace

Status prepare(PreparedCall& p, Stream* stream, Device* device, const flhal_op_call* call, Prepare mode) {
  uint64_t head;
  if (__builtin_expect(call == nullptr, 0)) return no_call();
  std::memcpy(&head, call, sizeof head);
  if (__builtin_expect(head != kCallHead || call->next, 0)) FLHAL_TRY(check_call_head(call));
  const OpDef* def = opset::row_of(call->op);
  if (__builtin_expect(def == nullptr, 0)) FLHAL_TRY(find_unlisted_op(call, device, &def));
  uint32_t n_out = call->n_outputs, n = n_out + call->n_inputs;
  if (__builtin_expect(n_out != def->n_outputs || call->n_inputs != def->n_inputs || n > kInlineTensors ||
                       call->tensor_stride < sizeof(flhal_tensor), 0))
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

  const bool pointwise = def->pointwise;
  const flhal_tensor& first = tensor_of(*call, 0);
  View first_view;
  uint64_t first_begin = 0, first_end = 0;
  uint64_t addresses = 0, reach = 0, misaligned = 0, bad_dtype = 0;
  uint64_t alias = 0;   // bit i: input i is an output, the same view
  uint32_t outputs_with_elements = 0;
  bool empty_input = false, overlap = false;

  for (uint32_t i = 0; i < n; ++i) {
    const flhal_tensor& t = tensor_of(*call, i);
    flhal_tensor_v1& o = p.tensors[i];
    std::memcpy(&o.sizes, &t.sizes, sizeof t - offsetof(flhal_tensor, sizes));
    uint64_t code;
    if (__builtin_expect(t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR), 0)) {
      FLHAL_TRY(take_special_operand(p, i, t, &o));
      bool scalar = (t.flags & FLHAL_TENSOR_HOST_SCALAR) != 0;
      code = scalar ? operand_code(t.dtype, 0, Layout::kHostScalar, 0) : 0;
      bad_dtype |= scalar ? (t.dtype >> 16) ^ 1 : 0;
    } else {
      View view;
      if (i && t.rank == first.rank && first_view.layout != Layout::kAbsent &&
          same_view(t.sizes, t.strides, first.sizes, first.strides, t.rank)) {
        view = first_view;
      } else {
        if (__builtin_expect(t.rank <= opset::kMaxRank && dense_view(t.sizes, t.strides, t.rank, &view.span), 1)) {
          view.layout = Layout::kDense;
          view.elements = view.span;
        } else {
          const char* what;
          if (!classify_slowly(t, &view, &what)) return malformed_operand(p, i, t, what);
          if (i < n_out && view.layout >= Layout::kStrided && overlaps_itself(t)) return output_overlaps_itself(p, i, t);
        }
        if (i == 0) {
          first_view = view;
        } else if (pointwise) {
          if (!broadcasts(t, first)) return does_not_broadcast(p, i, t);
          view.layout = pointwise_layout(view, t, first);
        } else if (view.layout == Layout::kPermuted) {
          view.layout = Layout::kStrided;
        }
      }
      uint64_t element = (t.dtype >> 11) & 0x1f;   // bytes: bits / 8
      uint64_t bytes = view.span * element;
      bad_dtype |= ((t.dtype >> 16) ^ 1) | (element == 0);
      reach |= bytes | view.elements;
      if (__builtin_expect(view.span == 0, 0)) {
        o.address = 0;
        o.memory = nullptr;
        o.offset = o.extent = 0;
        empty_input |= i >= n_out;
      } else {
        uint64_t address = t.address;
        misaligned |= address & (element - 1);
        outputs_with_elements += i < n_out;
        if (__builtin_expect(mode == Prepare::kRun, 1)) {
          Located place = AddressMap::locate(address);
          if (__builtin_expect(!place.slab || place.slab->device != device ||
                               address - place.block_base + bytes > place.block_bytes, 0))
            return operand_out_of_place(p, i, t, place, bytes);
          uint64_t device_address = place.slab->device_address;
          o.address = device_address ? device_address + place.offset : 0;
          o.memory = place.slab->memory;
          o.offset = place.offset;
        } else {
          o.address = address;
          o.memory = nullptr;
          o.offset = 0;
        }
        o.extent = bytes;
        addresses |= device_bits(o);
        if (i == 0) {
          first_begin = address;
          first_end = address + bytes;
        }
        overlap |= i && address < first_end && first_begin < address + bytes;
      }
      code = operand_code(t.dtype, t.rank, view.layout, t.flags);
    }
    if (i & 1) p.words[2 + i / 2] |= code << 32;
    else p.words[2 + i / 2] = code;
  }
  if (__builtin_expect(bad_dtype | misaligned, 0)) return malformed_dtype_or_address(p);
  if (__builtin_expect(overlap || n_out > 1, 0) && mode == Prepare::kRun) FLHAL_TRY(resolve_aliases(p, &alias));
  if (!pointwise) FLHAL_TRY(check_shapes(p));

  std::memcpy(&p.call, call, offsetof(flhal_op_call, compute_dtype) + sizeof(flhal_dtype));
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
  p.empty_output = outputs_with_elements == 0;
  p.empty_input = empty_input;
  p.wide = (reach >> 31) != 0;

  // One word for alignment, width and alias of the whole call: a word per operand would cost more and split classes finer.
  uint64_t align = (addresses & 63) == 0 ? 2 : (addresses & 15) == 0 ? 1 : 0;
  p.words[0] = uint64_t(def->number) | uint64_t(p.call.compute_dtype & 0xffff) << 16 | uint64_t(n_out & 0xff) << 32 |
               uint64_t(call->n_inputs & 0xffff) << 40 | uint64_t(call->flags & 0xff) << 56;
  p.words[1] = align | uint64_t(p.wide) << 2 | alias << 3 | uint64_t(device->index) << 40;
  p.n_words = 2 + (n + 1) / 2;
  if (__builtin_expect(call->n_attrs != 0, 0)) FLHAL_TRY(take_attributes(p));
  uint64_t hash = 0x243f6a8885a308d3ull;
  for (uint32_t i = 0; i < p.n_words; ++i) hash = mix(hash, p.words[i]);
  p.hash = hash;
  return FLHAL_OK;
}

}  // namespace flhal
