// src/dispatch/composite/builder.cc: the two runs of a composite.
#include "dispatch/composite/builder.h"

#include <cstring>

#include "dispatch/dispatch.h"
#include "dispatch/plan_cache.h"

namespace flhal {
namespace {

constexpr uint64_t kPlaceholder = 1ull << 20;   // aligned as the pool's blocks are

flhal_tensor as_tensor(const Part& t) {
  flhal_tensor out{};
  if (!t.given()) {
    out.flags = FLHAL_TENSOR_ABSENT;
    return out;
  }
  out.address = t.address;
  out.sizes = t.sizes;
  out.strides = t.strides;
  out.dtype = t.dtype;
  out.rank = static_cast<uint16_t>(t.rank);
  out.flags = t.flags;
  return out;
}

}  // namespace

Builder::Builder(const PreparedCall& p, Mode mode, bool host_parts)
    : p_(p), mode_(mode), host_parts_(host_parts), view_{*p.def, *p.source} {
  temporaries_.reserve(16);
}

Part Builder::operand(uint32_t i) const {
  const flhal_tensor& t = tensor_of(*p_.source, i);
  Part part;
  part.flags = t.flags;
  if (!part.given()) return part;
  part.address = t.address;
  part.dtype = t.dtype;
  part.rank = t.rank;
  if (t.rank) {
    std::memcpy(part.sizes, t.sizes, t.rank * sizeof(int64_t));
    std::memcpy(part.strides, t.strides, t.rank * sizeof(int64_t));
  }
  return part;
}

flhal_dtype Builder::wide() const {
  flhal_dtype c = compute();
  return c == FLHAL_F16 || c == FLHAL_BF16 ? FLHAL_F32 : c;
}

Part Builder::temporary(const int64_t* sizes, uint32_t rank, flhal_dtype dtype) {
  Part t;
  t.dtype = dtype;
  t.rank = rank;
  t.flags = 0;
  int64_t elements = 1;
  for (uint32_t d = rank; d-- > 0;) {
    t.sizes[d] = sizes[d];
    t.strides[d] = elements;
    elements *= sizes[d];
  }
  t.address = kPlaceholder;
  if (mode_ == Mode::kPlan || !status_.ok()) return t;
  auto made = Temporary::make(p_.stream, static_cast<uint64_t>(elements) * FLHAL_DTYPE_BYTES(dtype));
  if (!made.ok()) {
    status_ = made.status();
    return t;
  }
  t.address = made->address();
  temporaries_.push_back(std::move(*made));
  return t;
}

Part Builder::reduced(const Part& t, uint32_t dim, flhal_dtype dtype) {
  int64_t sizes[opset::kMaxRank];
  std::memcpy(sizes, t.sizes, t.rank * sizeof(int64_t));
  if (t.rank) sizes[dim] = 1;
  return temporary(sizes, t.rank, dtype);
}

Part Builder::reduced_tail(const Part& t, uint32_t n, flhal_dtype dtype) {
  int64_t sizes[opset::kMaxRank];
  for (uint32_t d = 0; d < t.rank; ++d) sizes[d] = d + n >= t.rank ? 1 : t.sizes[d];
  return temporary(sizes, t.rank, dtype);
}

Part Builder::number(double value) {
  Part t;
  numbers_[n_numbers_] = value;
  t.address = reinterpret_cast<uint64_t>(&numbers_[n_numbers_++]);
  t.dtype = FLHAL_F64;
  t.flags = FLHAL_TENSOR_HOST_SCALAR;
  return t;
}

void Builder::call(uint32_t op, std::initializer_list<const Part*> outputs, std::initializer_list<const Part*> inputs,
                   flhal_dtype compute, std::initializer_list<flhal_attr> attrs) {
  if (refused_ || !status_.ok()) return;
  flhal_tensor tensors[kInlineTensors];
  uint32_t n = 0;
  for (const Part* t : outputs) tensors[n++] = as_tensor(*t);
  for (const Part* t : inputs) tensors[n++] = as_tensor(*t);
  flhal_op_call call{};
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = op;
  call.tensors = tensors;
  call.tensor_stride = sizeof(flhal_tensor);
  call.n_outputs = static_cast<uint32_t>(outputs.size());
  call.n_inputs = static_cast<uint32_t>(inputs.size());
  call.attrs = attrs.begin();
  call.attr_stride = sizeof(flhal_attr);
  call.n_attrs = static_cast<uint32_t>(attrs.size());
  call.compute_dtype = compute;
  if (!host_parts_) call.flags |= FLHAL_CALL_NO_HOST_ROUTE;
  if (config().route.load(std::memory_order_relaxed) != ForcedRoute::kAuto) call.flags |= kCallInner;
  if (mode_ == Mode::kPlan) {
    uint32_t route;
    const char* reason;
    status_ = route_of_call(p_.device, &call, &route, &reason);
    refused_ = !status_.ok() || route == FLHAL_ROUTE_DECLINED;
    if (refused_)
      refusal_ = fmt::format("{}: {}", opset::row_of(op)->name, status_.ok() ? reason : last_error_text());
    return;
  }
  status_ = run_call(p_.stream, &call);
  bool writes_output = false;
  for (const Part* t : outputs)
    for (uint32_t i = 0; i < p_.source->n_outputs; ++i)
      writes_output |= t->given() && t->address == tensor_of(*p_.source, i).address;
  if (status_.code() == FLHAL_DECLINED && wrote_output_)
    status_ = fail(FLHAL_E_INTERNAL, "flhal_op_run: {}: part {} was declined after an output was written", p_.def->name,
                   opset::row_of(op)->name);
  wrote_output_ |= writes_output && status_.ok();
}

}  // namespace flhal
