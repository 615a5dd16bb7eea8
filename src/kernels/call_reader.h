// src/kernels/call_reader.h: reading the plugin form of a call: operands by number, attributes by key, kinds of dtypes.
#pragma once

#include <flhal/ops.h>
#include <flhal/plugin.h>

#include <cstdint>

#include "kernels/kernel_plan.h"
#include "kernels/params.h"

namespace flhal::kernels {

using Call = flhal_op_call_v1;
using Tensor = flhal_tensor_v1;

inline const Tensor& tensor_of(const Call& call, uint32_t i) {
  return *reinterpret_cast<const Tensor*>(reinterpret_cast<const char*>(call.tensors) + uint64_t(i) * call.tensor_stride);
}
inline uint32_t tensor_count(const Call& call) { return call.n_outputs + call.n_inputs; }
inline bool absent(const Tensor& t) { return (t.flags & FLHAL_TENSOR_ABSENT) != 0; }
inline bool host_scalar(const Tensor& t) { return (t.flags & FLHAL_TENSOR_HOST_SCALAR) != 0; }
// Operand i exists and is not absent.
inline bool given(const Call& call, uint32_t i) { return i < tensor_count(call) && !absent(tensor_of(call, i)); }

inline const flhal_attr_v1* find_attr(const Call& call, uint32_t key) {
  const char* p = reinterpret_cast<const char*>(call.attrs);
  for (uint32_t i = 0; i < call.n_attrs; ++i, p += call.attr_stride) {
    const auto* a = reinterpret_cast<const flhal_attr_v1*>(p);
    if (a->key == key) return a;
  }
  return nullptr;
}
inline int64_t attr_int(const Call& call, uint32_t key, int64_t otherwise) {
  const auto* a = find_attr(call, key);
  return a == nullptr ? otherwise : a->kind == FLHAL_ATTR_INT ? a->v.i : static_cast<int64_t>(a->v.f);
}
inline double attr_float(const Call& call, uint32_t key, double otherwise) {
  const auto* a = find_attr(call, key);
  return a == nullptr ? otherwise : a->kind == FLHAL_ATTR_INT ? static_cast<double>(a->v.i) : a->v.f;
}
// Element i of an INTS attribute; one value stands for all.
inline int64_t attr_ints(const Call& call, uint32_t key, uint32_t i, int64_t otherwise) {
  const auto* a = find_attr(call, key);
  if (a == nullptr) return otherwise;
  if (a->kind == FLHAL_ATTR_INT) return a->v.i;
  if (a->count == 0) return otherwise;
  return static_cast<const int64_t*>(a->v.p)[i < a->count ? i : a->count - 1];
}
// A dim attribute: negative counts from the end. `rank` 0 gives 0.
inline int64_t attr_dim(const Call& call, uint32_t key, int64_t otherwise, uint32_t rank) {
  int64_t d = attr_int(call, key, otherwise);
  return d < 0 ? d + (rank == 0 ? 1 : int64_t(rank)) : d;
}

// kKinds when kernels do not know the dtype.
inline Kind kind_of(flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_I8: return kI8;
    case FLHAL_I16: return kI16;
    case FLHAL_I32: return kI32;
    case FLHAL_I64: return kI64;
    case FLHAL_U8: return kU8;
    case FLHAL_U16: return kU16;
    case FLHAL_U32: return kU32;
    case FLHAL_U64: return kU64;
    case FLHAL_F16: return kF16;
    case FLHAL_BF16: return kBF16;
    case FLHAL_F32: return kF32;
    case FLHAL_F64: return kF64;
    case FLHAL_C64: return kC64;
    case FLHAL_C128: return kC128;
    case FLHAL_BOOL: return kBool;
    default: return kKinds;
  }
}
// The type arithmetic on this kind is done in.
inline Compute compute_of(Kind kind) {
  switch (kind) {
    case kF16: case kBF16: case kF32: return kCF32;
    case kF64: return kCF64;
    case kI32: return kCI32;
    case kC64: case kC128: return kCC128;
    default: return kCI64;
  }
}

inline uint64_t element_count(const Tensor& t) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < t.rank; ++d) n *= static_cast<uint64_t>(t.sizes[d]);
  return n;
}
// Dense in row-major order; dimensions of size 1 do not count.
inline bool contiguous(const Tensor& t) {
  int64_t expected = 1;
  for (uint32_t d = t.rank; d-- > 0;) {
    if (t.sizes[d] != 1 && t.strides[d] != expected) return false;
    expected *= t.sizes[d];
  }
  return true;
}

// --- filling LaunchArgs -------------------------------------------------------------------------------------------------
inline void begin_args(LaunchArgs& out, uint64_t groups) {
  out.groups[0] = groups ? groups : 1;
  out.groups[1] = out.groups[2] = 1;
  out.group_size[0] = out.group_size[1] = out.group_size[2] = 1;
  out.n_args = 0;
  out.values_used = 0;
}
// Room for a VALUE of `bytes` bytes, aligned to 16.
inline void* add_value(LaunchArgs& out, uint32_t bytes) {
  flhal_p_arg& arg = out.args[out.n_args];
  void* place = out.values + out.values_used;
  arg.kind = FLHAL_ARG_VALUE;
  arg.size = bytes;
  arg.value = place;
  arg.memory = nullptr;
  arg.offset = arg.address = 0;
  out.operand[out.n_args++] = -1;
  out.values_used += (bytes + 15u) & ~15u;
  return place;
}
inline void add_memory(LaunchArgs& out, const Call& call, uint32_t operand) {
  const Tensor& t = tensor_of(call, operand);
  flhal_p_arg& arg = out.args[out.n_args];
  arg.kind = FLHAL_ARG_MEMORY;
  arg.size = 0;
  arg.value = nullptr;
  arg.memory = t.memory;
  arg.offset = t.offset;
  arg.address = t.address;
  out.operand[out.n_args++] = static_cast<int8_t>(operand);
}
// A tensor operand, or the bytes of a host scalar as a value: kernels see a pointer either way.
inline void add_operand(LaunchArgs& out, const Call& call, uint32_t operand) {
  const Tensor& t = tensor_of(call, operand);
  if (!host_scalar(t)) return add_memory(out, call, operand);
  uint32_t bytes = FLHAL_DTYPE_BYTES(t.dtype);
  void* place = add_value(out, bytes);
  __builtin_memcpy(place, reinterpret_cast<const void*>(t.address), bytes);
}
// An absent operand: four zero bytes, so that argument numbers stay.
inline void add_nothing(LaunchArgs& out) { __builtin_memset(add_value(out, 16), 0, 16); }
inline void add_optional(LaunchArgs& out, const Call& call, uint32_t operand) {
  if (given(call, operand)) add_operand(out, call, operand);
  else add_nothing(out);
}

}  // namespace flhal::kernels
