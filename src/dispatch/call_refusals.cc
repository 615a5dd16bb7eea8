// src/dispatch/call_refusals.cc: the sentences of refused calls. Each: function, op and operand, what was found, what is
// needed. Nothing here runs in a good call.
#include "dispatch/call_refusals.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "dispatch/opset/call_view.h"
#include "dispatch/opset/rule_text.h"
#include "dispatch/vendor_ops.h"

namespace flhal {

using opset::OpDef;
using opset::sizes_text;

std::string dtype_name(flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_BOOL: return "bool";
    case FLHAL_BF16: return "bfloat16";
    default: break;
  }
  static const char* const names[] = {"int", "uint", "float"};
  uint32_t code = FLHAL_DTYPE_CODE(dtype), bits = (dtype >> 8) & 0xff;
  if (dtype >> 16 == 1 && code < 3) return fmt::format("{}{}", names[code], bits);
  if (dtype >> 16 == 1 && code == 5) return fmt::format("complex{}", bits);
  return fmt::format("dtype {:#x}", dtype);
}

std::string operand_name(const PreparedCall& p, uint32_t i) {
  uint32_t n_out = p.source->n_outputs;
  const char* side = i < n_out ? "output" : "input";
  uint32_t slot = i < n_out ? i : p.def->n_outputs + (i - n_out);
  if (p.def->variadic() || slot >= opset::kMaxOperands || !p.def->operands[slot].name)
    return fmt::format("{}: {} {}", p.def->name, side, i < n_out ? i : i - n_out);
  return fmt::format("{}: {} {}", p.def->name, side, p.def->operands[slot].name);
}

// A call's head is the caller's memory: what is no size must not be read up to, and a chain may bite its own tail.
constexpr uint32_t kLongestStruct = 64 * 1024;
// Version 1.0 ends here, and programs of 1.0 go on calling: never the sizeof of today. What a caller does not reach is zero,
// so a field that comes behind is read through whole_call().
constexpr uint32_t kCallBytesV1_0 = offsetof(flhal_op_call, flags) + sizeof(uint32_t);
constexpr uint32_t kMostLinks = 64;

Status no_call() { return fail(FLHAL_E_INVALID, "flhal_op_run: call is NULL"); }

Status check_call_head(const flhal_op_call* call) {
  if (call->struct_type != FLHAL_ST_OP_CALL)
    return fail(FLHAL_E_INVALID, "flhal_op_run: struct_type of the call is {}; FLHAL_ST_OP_CALL ({}) is needed",
                call->struct_type, FLHAL_ST_OP_CALL);
  if (call->struct_size < kCallBytesV1_0)
    return fail(FLHAL_E_INVALID, "flhal_op_run: struct_size of the call is {}; at least {} is needed",
                call->struct_size, kCallBytesV1_0);
  if (call->struct_size > kLongestStruct)
    return fail(FLHAL_E_INVALID, "flhal_op_run: struct_size of the call is {}, which is no size; set it to sizeof(flhal_op_call)",
                call->struct_size);
  const char* bytes = reinterpret_cast<const char*>(call);
  for (uint32_t at = sizeof(flhal_op_call); at < call->struct_size; ++at)
    if (bytes[at])
      return fail(FLHAL_E_ABI,
                  "flhal_op_run: the call sets a field at offset {} that this library (flhal {}.{}) does not know; "
                  "install a newer flhal",
                  at, FLHAL_VERSION_MAJOR, FLHAL_VERSION_MINOR);
  struct Link {
    uint32_t struct_size, struct_type;
    const void* next;
  };
  uint32_t links = 0;
  for (auto* link = static_cast<const Link*>(call->next); link; link = static_cast<const Link*>(link->next)) {
    if (++links > kMostLinks)
      return fail(FLHAL_E_INVALID, "flhal_op_run: the call's chain of extensions has more than {} links, or ends in itself", kMostLinks);
    if (link->struct_type >> 31)
      return fail(FLHAL_E_UNSUPPORTED, "flhal_op_run: the call carries an extension of struct_type {:#x} that this library "
                  "does not know and that must not be ignored", link->struct_type);
  }
  return FLHAL_OK;
}

static Status no_such_op(const char* name, Device* device) {
  std::string own = vendor_op_names(device);
  if (!own.empty()) own = "; it has " + own;
  return fail(FLHAL_E_NOT_FOUND, "flhal_op_run: there is no op \"{}\", neither in the op set nor among the vendor ops of {}{}", name,
              device->name, own);
}

flhal_op_call whole_call(const flhal_op_call& call) {
  flhal_op_call whole{};
  std::memcpy(&whole, &call, std::min<size_t>(call.struct_size, sizeof whole));
  whole.struct_size = sizeof whole;
  return whole;
}

Status find_unlisted_op(const flhal_op_call* call, Device* device, const OpDef** def) {
  if (call->op != 0)
    return fail(FLHAL_E_INVALID, "flhal_op_run: there is no op number {:#x}; the numbers are in flhal/ops.h", call->op);
  if (!call->name || !*call->name)
    return fail(FLHAL_E_INVALID, "flhal_op_run: the call has neither an op number nor a name");
  *def = opset::find(call->name);
  if (!*def) *def = vendor_op(device, call->name);
  if (!*def) return no_such_op(call->name, device);
  return FLHAL_OK;
}

Status check_counts(const OpDef& def, const flhal_op_call* call) {
  if (call->tensor_stride < sizeof(flhal_tensor))
    return fail(FLHAL_E_INVALID, "flhal_op_run: {}: tensor_stride is {}; at least {} is needed", def.name,
                call->tensor_stride, sizeof(flhal_tensor));
  constexpr uint32_t kLimit = 1u << 16;
  if (is_vendor_op(def)) {
    if (call->n_outputs == 0 || call->n_outputs > 255 || call->n_inputs >= kLimit)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {} outputs and {} inputs; 1 to 255 and fewer than 65536 are possible",
                  def.name, call->n_outputs, call->n_inputs);
    return FLHAL_OK;
  }
  bool fits = call->n_outputs == def.n_outputs &&
              (def.variadic() ? call->n_inputs >= def.n_inputs && call->n_inputs < kLimit : call->n_inputs == def.n_inputs);
  if (!fits)
    return fail(FLHAL_E_INVALID,
                "flhal_op_run: {}: {} outputs and {} inputs are given; {} and {}{} are needed (optional ones as "
                "FLHAL_TENSOR_ABSENT)",
                def.name, call->n_outputs, call->n_inputs, def.n_outputs, def.n_inputs,
                def.variadic() ? " or more" : "");
  return FLHAL_OK;
}

Status malformed_operand(const PreparedCall& p, uint32_t i, const flhal_tensor& t, const char* what) {
  if (t.rank > opset::kMaxRank)
    return fail(FLHAL_E_INVALID, "flhal_op_run: {} {} (rank {})", operand_name(p, i), what, t.rank);
  return fail(FLHAL_E_INVALID, "flhal_op_run: {} {}: sizes {}, strides {}", operand_name(p, i), what, sizes_text(t),
              sizes_text(t.strides, t.rank));
}

Status output_overlaps_itself(const PreparedCall& p, uint32_t i, const flhal_tensor& t) {
  return fail(FLHAL_E_INVALID,
              "flhal_op_run: {} overlaps itself: sizes {}, strides {}; several elements share one place, write to a "
              "tensor of its own",
              operand_name(p, i), sizes_text(t), sizes_text(t.strides, t.rank));
}

Status does_not_broadcast(const PreparedCall& p, uint32_t i, const flhal_tensor& t) {
  if (i < p.def->n_outputs)
    return fail(FLHAL_E_INVALID, "flhal_op_run: {} {} has other sizes than output 0 {}", operand_name(p, i),
                sizes_text(t), sizes_text(tensor_of(*p.source, 0)));
  return fail(FLHAL_E_INVALID, "flhal_op_run: {} {} does not broadcast to the output {}", operand_name(p, i),
              sizes_text(t), sizes_text(tensor_of(*p.source, 0)));
}

Status operand_out_of_place(const PreparedCall& p, uint32_t i, const flhal_tensor& t, uint64_t bytes) {
  Located place = AddressMap::locate(t.address);
  std::string name = operand_name(p, i);
  if (t.address == 0)
    return fail(FLHAL_E_INVALID, "flhal_op_run: {} has elements and no memory (address 0: never allocated, or its storage was resized to 0)", name);
  if (!place.slab)
    return fail(FLHAL_E_INVALID,
                "flhal_op_run: {} lies at {:#x}, which is no device memory (a host pointer, or freed); allocate it with "
                "flhal_alloc on {}",
                name, t.address, p.device->name);
  if (place.slab->device != p.device)
    return fail(FLHAL_E_INVALID, "flhal_op_run: {} lies on device {} ({}), the stream is of device {} ({}); copy it there",
                name, place.slab->device->index, place.slab->device->name, p.device->index, p.device->name);
  if (place.block_bytes == 0)
    return fail(FLHAL_E_INVALID, "flhal_op_run: {} lies at {:#x}, in memory that was freed or lost with its device", name,
                t.address);
  uint64_t offset = t.address - place.block_base;
  return fail(FLHAL_E_INVALID,
              "flhal_op_run: {} spans bytes [{}, {}) of an allocation of {} bytes; sizes {}, strides {}, {} bytes an "
              "element",
              name, offset, offset + bytes, place.block_bytes, sizes_text(t), sizes_text(t.strides, t.rank),
              FLHAL_DTYPE_BYTES(t.dtype));
}

Status malformed_dtype_or_address(const PreparedCall& p) {
  for (uint32_t i = 0; i < p.n_tensors; ++i) {
    const flhal_tensor& t = tensor_of(*p.source, i);
    if (t.flags & FLHAL_TENSOR_ABSENT) continue;
    uint32_t element = FLHAL_DTYPE_BYTES(t.dtype);
    if (t.layout != 0)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {} has layout {}; only 0 (strided) is defined", operand_name(p, i),
                  t.layout);
    if (t.dtype >> 16 != 1 || element == 0)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {} has dtype {:#x}; one lane of whole bytes is needed",
                  operand_name(p, i), t.dtype);
    if (!(t.flags & FLHAL_TENSOR_HOST_SCALAR) && p.tensors[i].extent && t.address % element)
      return fail(FLHAL_E_INVALID, "flhal_op_run: {} lies at {:#x}, not a multiple of its {} bytes an element",
                  operand_name(p, i), t.address, element);
  }
  return fail(FLHAL_E_INTERNAL, "flhal_op_run: {}: malformed operand not found again", p.def->name);
}

Status check_shapes(const PreparedCall& p) {
  if (!p.def->check) return FLHAL_OK;   // vendor ops
  std::string why;
  if (__builtin_expect(p.def->check(opset::CallView{*p.def, *p.source}, &why), 1)) return FLHAL_OK;
  return fail(FLHAL_E_INVALID, "flhal_op_run: {}: {}", p.def->name, why);
}

}  // namespace flhal
