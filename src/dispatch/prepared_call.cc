// src/dispatch/prepared_call.cc: operands and calls that the fast pass of prepare.h does not take.
#include "dispatch/prepared_call.h"

#include "dispatch/prepare.h"
#include "memory/kept_ranges.h"

namespace flhal {
namespace {

// The class of a pointwise input that is not laid out as output 0.
Layout pointwise_layout(const View& view, const flhal_tensor& t, const flhal_tensor& out) {
  bool same = t.rank == out.rank;
  for (uint32_t d = 0; same && d < t.rank; ++d) same = t.sizes[d] == out.sizes[d];
  if (same) return view.layout;
  if (view.elements == 1) return Layout::kOne;
  return view.layout == Layout::kDense ? Layout::kDenseBroadcast : Layout::kStridedBroadcast;
}

// numpy's rule for one input against output 0.
bool broadcasts(const flhal_tensor& t, const flhal_tensor& out) {
  if (t.rank > out.rank) return false;
  uint32_t skip = out.rank - t.rank;
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != out.sizes[skip + d] && t.sizes[d] != 1) return false;
  return true;
}

}  // namespace

Status take_kept_place(PreparedCall& p, uint32_t i, const flhal_tensor& t, uint64_t bytes) {
  Located at;
  if (p.stream == nullptr || p.stream->kept == nullptr || !p.stream->kept->find(t.address, bytes, &at))
    return operand_out_of_place(p, i, t, bytes);
  flhal_tensor_v1& o = p.tensors[i];
  o.address = at.slab->device_address ? at.slab->device_address + at.offset : 0;
  o.memory = at.slab->memory;
  o.offset = at.offset;
  o.extent = bytes;
  return FLHAL_OK;
}

Status take_operand(PreparedCall& p, Gathered& g, uint32_t i, Prepare mode) {
  const flhal_tensor& t = tensor_of(*p.source, i);
  const flhal_tensor& first = *p.source->tensors;
  uint32_t n_out = p.source->n_outputs;
  flhal_tensor_v1& o = p.tensors[i];
  take_shape(o, t);
  if (__builtin_expect(t.flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR), 0)) {
    bool scalar = (t.flags & FLHAL_TENSOR_ABSENT) == 0;     // of what is absent nothing else is looked at
    g.malformed |= scalar && (t.layout != 0 || !dtype_fits(t.dtype));
    put_code(p, i, scalar ? operand_code(t.dtype, 0, Layout::kHostScalar, 0) : 0);
    return take_special_operand(p, i, t, &o);
  }
  g.malformed |= t.layout != 0;
  View view;
  if (i && g.first_rank == t.rank && same_view(t.sizes, t.strides, first.sizes, first.strides, t.rank)) {
    view = g.first;
  } else {
    if (t.rank <= opset::kMaxRank && dense_view(t.sizes, t.strides, t.rank, &view.span)) {
      view.layout = Layout::kDense;
      view.elements = view.span;
    } else {
      const char* what;
      if (!classify_slowly(t, i == 0, &view, &what)) return malformed_operand(p, i, t, what);
      if (i < n_out && view.layout >= Layout::kStrided && overlaps_itself(t)) return output_overlaps_itself(p, i, t);
    }
    if (i && p.def->pointwise) {
      if (!broadcasts(t, first)) return does_not_broadcast(p, i, t);
      view.layout = pointwise_layout(view, t, first);
    }
  }
  put_code(p, i, operand_code(t.dtype, t.rank, view.layout, t.flags));
  uint32_t element = element_bytes(t.dtype);
  uint64_t bytes = view.span * element;
  g.reach |= bytes | view.elements;
  g.malformed |= !dtype_fits(t.dtype);
  if (view.span == 0) {
    o.address = 0;
    o.memory = nullptr;
    o.offset = o.extent = 0;
    g.empty_input |= i >= n_out;
    return FLHAL_OK;
  }
  g.outputs_with_elements += i < n_out;
  uint64_t address = t.address;
  g.malformed |= (address & (element - 1ull)) != 0;
  if (mode == Prepare::kPlaceholder) {
    o.address = address;
    o.memory = nullptr;
    o.offset = 0;
    o.extent = bytes;
  } else if (!take_place(o, address, bytes, p.device)) {
    FLHAL_TRY(take_kept_place(p, i, t, bytes));
  }
  g.addresses |= address;
  if (i == 0) {
    g.first = view;
    g.first_begin = address;
    g.first_end = address + bytes;
    g.first_rank = t.rank;
  } else {
    g.overlap |= address < g.first_end && g.first_begin < address + bytes;
  }
  return FLHAL_OK;
}

Status finish_rarely(PreparedCall& p, Gathered& g, Prepare mode, bool check_overlap, uint64_t* alias) {
  if (g.malformed) return malformed_dtype_or_address(p);
  if (check_overlap && mode == Prepare::kRun) FLHAL_TRY(resolve_aliases(p, alias));
  return p.def->pointwise ? Status() : check_shapes(p);
}

Status prepare_for_planning(PreparedCall& p, Device* device, const flhal_op_call* call) {
  return prepare_inline(p, nullptr, device, call, Prepare::kPlaceholder);
}

}  // namespace flhal
