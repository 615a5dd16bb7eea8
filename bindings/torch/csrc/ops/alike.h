// csrc/ops/alike.h: the shortest way of tensors into flhal_op_run: operands of one dtype and one dense shape.
//
// Idea: what is asked of one operand is known of all, so a call is a few stores into an array on the stack. Whoever calls
// has looked with alike() or plain(); what does not pass goes through OpCall (call.h), which can say everything.
#pragma once

#include "csrc/call.h"
#include "csrc/device.h"
#include "csrc/errors.h"

namespace torch_fl {

// All inlined by force: at -O2 the compiler would call each of them.

// Of a float type, row-major without gaps, with elements, no lazy negation; and the call is a real one.
[[gnu::always_inline]] inline bool plain(const c10::TensorImpl* t) {
  constexpr uint64_t kFloats = 1ull << int(c10::ScalarType::Float) | 1ull << int(c10::ScalarType::Double) |
                               1ull << int(c10::ScalarType::Half) | 1ull << int(c10::ScalarType::BFloat16);
  const auto type = static_cast<unsigned>(c10::typeMetaToScalarType(t->dtype()));
  return type < 64 && (kFloats >> type & 1) && t->is_contiguous() && t->numel() != 0 && t->dim() <= 16 &&
         !t->key_set().has(c10::DispatchKey::Negative) && !t_dry_run;
}

// `b` is as plain as `a`, and alike.
[[gnu::always_inline]] inline bool alike(const c10::TensorImpl* a, const c10::TensorImpl* b) {
  if (!(a->dtype() == b->dtype() && a->device() == b->device() && b->is_contiguous() &&
        !b->key_set().has(c10::DispatchKey::Negative)))
    return false;
  const c10::IntArrayRef x = a->sizes(), y = b->sizes();
  if (x.size() != y.size()) return false;
  int64_t different = 0;
  for (size_t d = 0; d < x.size(); ++d) different |= x[d] ^ y[d];
  return different == 0;
}

// Dense tensors of one size and one storage overlap in part when their first elements are different, and nearer than that size.
[[gnu::always_inline]] inline bool overlap_in_part(const c10::TensorImpl* a, const c10::TensorImpl* b) {
  if (C10_LIKELY(a->unsafe_storage().unsafeGetStorageImpl() != b->unsafe_storage().unsafeGetStorageImpl())) return false;
  const uint64_t bytes = static_cast<uint64_t>(a->numel()) * a->itemsize(), distance = address_of(b) - address_of(a);
  return distance != 0 && (distance < bytes || -distance < bytes);
}

// Runs `op` on operands that are alike, output first. False: declined; failures throw.
template <class... Tensors>
[[gnu::always_inline]] inline bool run_alike(uint32_t op, const c10::TensorImpl* out, const Tensors*... in) {
  const c10::IntArrayRef sizes = out->sizes();
  const int64_t* strides = out->strides().data();
  const flhal_dtype dtype = flhal_dtype_of(c10::typeMetaToScalarType(out->dtype()));
  const auto itemsize = static_cast<int64_t>(out->itemsize());   // one look-up for all
  auto describe = [&](const c10::TensorImpl* t) __attribute__((always_inline)) {
    const char* base = static_cast<const char*>(t->unsafe_storage().unsafeGetStorageImpl()->data());
    return flhal_tensor{.address = reinterpret_cast<flhal_addr>(base + t->storage_offset() * itemsize), .sizes = sizes.data(), .strides = strides, .dtype = dtype,
                        .rank = static_cast<uint16_t>(sizes.size())};
  };
  const flhal_tensor tensors[] = {describe(out), describe(in)...};
  const flhal_op_call call{.struct_size = sizeof(flhal_op_call), .struct_type = FLHAL_ST_OP_CALL, .op = op, .tensors = tensors,
                           .tensor_stride = sizeof(flhal_tensor), .n_outputs = 1, .n_inputs = sizeof...(in),
                           .compute_dtype = dtype};
  const flhal_status status = flhal_op_run(current_stream(out->device().index()), &call);
  if (C10_LIKELY(status == FLHAL_OK)) return true;
  if (status != FLHAL_DECLINED) raise_status(status, "flhal_op_run");
  return false;
}

}  // namespace torch_fl
