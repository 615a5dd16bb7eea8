// csrc/call.h: one flhal_op_call, built from tensors on the stack of the caller.
//
// Idea: sizes and strides are borrowed from the TensorImpl, so a call costs a few stores and no allocation. Outputs come
// first, then inputs, as the op set says. submit() is the one door to flhal_op_run: it is also where a dry run asks for
// the route instead.
// Threads: an OpCall belongs to one thread; the dry run is per thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <flhal/op.h>
#include <flhal/ops.h>

#include <string>
#include <vector>

#include "csrc/dtypes.h"

namespace torch_fl {

// Address of element [0, ..., 0]. No checks: device memory of a tensor we were dispatched for.
inline flhal_addr address_of(const c10::TensorImpl* impl) {
  const char* base = static_cast<const char*>(impl->unsafe_storage().unsafeGetStorageImpl()->data());
  return reinterpret_cast<flhal_addr>(base + impl->storage_offset() * static_cast<int64_t>(impl->itemsize()));
}

class OpCall {
 public:
  static constexpr uint32_t kMaxTensors = 16;   // operands of every op but cat, which brings its own array
  static constexpr uint32_t kMaxAttrs = 6;

  explicit OpCall(uint32_t op, c10::ScalarType compute = c10::ScalarType::Undefined) {
    call_.op = op;
    call_.compute_dtype = flhal_dtype_of(compute);
  }
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;

  // An op that only the plugin knows; borrowed until submit(). `op` is 0 then.
  void name(const char* vendor_op) { call_.name = vendor_op; }
  void out(const at::Tensor& t) { add(t.unsafeGetTensorImpl()); ++call_.n_outputs; }
  void in(const at::Tensor& t) { add(t.unsafeGetTensorImpl()); ++call_.n_inputs; }
  void out(const c10::TensorImpl* t) { add(t); ++call_.n_outputs; }
  void in(const c10::TensorImpl* t) { add(t); ++call_.n_inputs; }
  // An operand with sizes, layout and dtype of the first one; only its address is asked. A third of the cost of out() or in().
  void in_like_first(const c10::TensorImpl* t) { like_first(t); ++call_.n_inputs; }
  // The memory of `t` under other sizes and strides; the arrays must live until submit().
  void out_as(const at::Tensor& t, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    add_as(t.unsafeGetTensorImpl(), sizes, strides);
    ++call_.n_outputs;
  }
  void in_as(const at::Tensor& t, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    add_as(t.unsafeGetTensorImpl(), sizes, strides);
    ++call_.n_inputs;
  }
  void out_or_absent(const at::Tensor& t) { t.defined() ? add(t.unsafeGetTensorImpl()) : absent(); ++call_.n_outputs; }
  void in_or_absent(const at::Tensor& t) { t.defined() ? add(t.unsafeGetTensorImpl()) : absent(); ++call_.n_inputs; }
  void in_absent() { absent(); ++call_.n_inputs; }
  // A number, rounded to `type` first. At most three per call.
  void in_scalar(const c10::Scalar& value, c10::ScalarType type);
  // A 0-dim tensor in host memory, read in place.
  void in_host(const c10::TensorImpl* cpu_scalar);

  void attr(uint32_t key, int64_t value, bool dynamic = false);
  void attr(uint32_t key, double value, bool dynamic = false);
  void attr(uint32_t key, const c10::Scalar& value, bool dynamic = false);
  void attr(uint32_t key, c10::IntArrayRef values);          // borrowed until submit()
  void attr(uint32_t key, c10::ArrayRef<double> values);     // borrowed too
  void attr(uint32_t key, const std::string& text);          // borrowed too
  void attr(uint32_t key, const flhal_philox* philox);
  // Splits the operands into groups (variadic ops): length of each, outputs first. Borrowed until submit().
  void groups(const uint32_t* lengths, uint32_t count) { call_.groups = lengths; call_.n_groups = count; }
  // Uses the caller's operand array instead (outputs first): for more operands than kMaxTensors.
  void operands(const flhal_tensor* tensors, uint32_t n_outputs, uint32_t n_inputs) {
    call_.tensors = tensors;
    call_.n_outputs = n_outputs;
    call_.n_inputs = n_inputs;
  }
  static void describe(const c10::TensorImpl* t, flhal_tensor* out);

  // Why the call cannot even be written down (a dtype that flhal has not, rank above 16); nullptr when it can.
  const char* unwritable() const { return unwritable_; }
  const flhal_op_call* get() const { return &call_; }

 private:
  flhal_tensor* next() { return &tensors_[call_.n_outputs + call_.n_inputs]; }
  flhal_attr* next_attr(uint32_t key, uint16_t kind, bool dynamic);
  void add(const c10::TensorImpl* t) {
    describe(t, next());
    check_last();
    if (C10_UNLIKELY(has_lazy_bits(t))) unwritable_ = "an operand carries a lazy conjugate or negation";
  }
  static bool has_lazy_bits(const c10::TensorImpl* t) {   // flhal sees memory, not torch's bits about it
    return t->key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}));
  }
  void add_as(const c10::TensorImpl* t, c10::IntArrayRef sizes, c10::IntArrayRef strides);
  void like_first(const c10::TensorImpl* t) {
    flhal_tensor* to = next();
    *to = tensors_[0];
    to->address = address_of(t);
  }
  void check_last() {
    const flhal_tensor* t = next();
    if (C10_UNLIKELY(t->dtype == 0 || t->rank > 16)) refuse(t);
  }
  void refuse(const flhal_tensor* t);
  void absent() { *next() = flhal_tensor{.flags = FLHAL_TENSOR_ABSENT}; }

  flhal_op_call call_{.struct_size = sizeof(flhal_op_call), .struct_type = kCallType, .tensors = tensors_,
                      .attrs = attrs_, .tensor_stride = sizeof(flhal_tensor), .attr_stride = sizeof(flhal_attr)};
  const char* unwritable_ = nullptr;
  uint32_t n_scalars_ = 0;
  static constexpr uint32_t kCallType = 10;   // FLHAL_ST_OP_CALL; plugin.h, which names it, is not for applications
  // Left unset on purpose: only the first n_outputs + n_inputs (n_attrs) are ever read.
  flhal_tensor tensors_[kMaxTensors];
  flhal_attr attrs_[kMaxAttrs];
  alignas(16) unsigned char scalars_[3][16];
};

inline void OpCall::describe(const c10::TensorImpl* t, flhal_tensor* out) {
  c10::IntArrayRef sizes = t->sizes();
  out->address = address_of(t);
  out->extent = 0;
  out->sizes = sizes.data();
  out->strides = t->strides().data();
  out->dtype = flhal_dtype_of(c10::typeMetaToScalarType(t->dtype()));
  out->rank = static_cast<uint16_t>(sizes.size());
  out->layout = 0;
  out->flags = 0;
  out->reserved = 0;
}

// Runs the call on the current stream of `device`, or notes its route in a dry run. True = done or queued; false =
// declined, with decline_reason() telling why. Failures throw torch's exceptions.
bool submit(const OpCall& call, c10::DeviceIndex device);
const char* decline_reason();
void set_decline_reason(const char* static_text);   // for refusals that the adapter itself makes

// Dry run of this thread: calls are routed and noted, nothing runs, outputs keep undefined contents.
struct RouteNote {
  std::string aten;      // the ATen overload, as aten::add.Tensor
  uint32_t op;           // the flhal op it became; 0 when it became none
  uint32_t route;        // FLHAL_ROUTE_*; FLHAL_ROUTE_DECLINED: PyTorch's CPU op would run
  std::string reason;    // why better routes were not taken
};
void dry_run_begin();
std::vector<RouteNote> dry_run_end();
extern thread_local constinit bool t_dry_run;
inline bool in_dry_run() { return t_dry_run; }
// An ATen call that would go to the CPU fallback.
void dry_run_note_fallback(const std::string& aten, const char* reason);

// Names the ATen overload whose calls follow, for the notes. Costs one store.
class AtenScope {
 public:
  explicit AtenScope(const std::string* name);
  ~AtenScope();
  AtenScope(const AtenScope&) = delete;
  AtenScope& operator=(const AtenScope&) = delete;

 private:
  const std::string* before_;
};

}  // namespace torch_fl
