// csrc/call.cc: the cold half of OpCall, and the one door to flhal_op_run.
#include "csrc/call.h"

#include <ATen/core/Tensor.h>

#include "csrc/device.h"
#include "csrc/errors.h"

namespace torch_fl {
namespace {

struct CallState {
  const char* own_reason = nullptr;      // set when the adapter refused; else core's reason counts
  const std::string* aten = nullptr;
  std::vector<RouteNote> notes;
};
// One pointer, so that initial-exec TLS of a late library stays small; the block lives as long as its thread.
thread_local constinit CallState* t_call_state = nullptr;
CallState& call_state() {
  if (C10_UNLIKELY(t_call_state == nullptr)) t_call_state = new CallState;
  return *t_call_state;
}

template <typename T>
uint32_t store(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return sizeof value;
}

// False: flhal computes with no numbers of this type (float8, complex32).
bool store_scalar(unsigned char* to, const c10::Scalar& v, c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte: store(to, static_cast<uint8_t>(v.toLong())); return true;
    case c10::ScalarType::Char: store(to, static_cast<int8_t>(v.toLong())); return true;
    case c10::ScalarType::Short: store(to, static_cast<int16_t>(v.toLong())); return true;
    case c10::ScalarType::Int: store(to, static_cast<int32_t>(v.toLong())); return true;
    case c10::ScalarType::Long: store(to, v.toLong()); return true;
    case c10::ScalarType::UInt16: store(to, static_cast<uint16_t>(v.toLong())); return true;
    case c10::ScalarType::UInt32: store(to, static_cast<uint32_t>(v.toLong())); return true;
    case c10::ScalarType::UInt64: store(to, v.toUInt64()); return true;
    case c10::ScalarType::Half: store(to, c10::Half(static_cast<float>(v.toDouble()))); return true;
    case c10::ScalarType::BFloat16: store(to, c10::BFloat16(static_cast<float>(v.toDouble()))); return true;
    case c10::ScalarType::Float: store(to, static_cast<float>(v.toDouble())); return true;
    case c10::ScalarType::Double: store(to, v.toDouble()); return true;
    case c10::ScalarType::ComplexFloat: store(to, static_cast<c10::complex<float>>(v.toComplexDouble())); return true;
    case c10::ScalarType::ComplexDouble: store(to, v.toComplexDouble()); return true;
    case c10::ScalarType::Bool: store(to, static_cast<uint8_t>(v.toBool())); return true;
    default: return false;
  }
}

bool dry_submit(CallState& state, const OpCall& call, c10::DeviceIndex device) {
  uint32_t route = FLHAL_ROUTE_NONE;
  const char* reason = "";
  check(flhal_op_route(device_handle(device), call.get(), &route, &reason), "flhal_op_route");
  state.notes.push_back({state.aten ? *state.aten : std::string(), call.get()->op, route, reason ? reason : ""});
  return true;   // nothing may run, so a declined call is not handed on either
}

}  // namespace

thread_local constinit bool t_dry_run = false;

void OpCall::in_scalar(const c10::Scalar& value, c10::ScalarType type) {
  TORCH_INTERNAL_ASSERT(n_scalars_ < 3);
  flhal_tensor* t = next();
  unsigned char* bytes = scalars_[n_scalars_++];
  if (!store_scalar(bytes, value, type)) unwritable_ = "a number of a dtype that flhal does not compute with";
  *t = flhal_tensor{.address = reinterpret_cast<flhal_addr>(bytes), .dtype = flhal_dtype_of(type),
                    .flags = FLHAL_TENSOR_HOST_SCALAR};
  ++call_.n_inputs;
}

void OpCall::in_host(const c10::TensorImpl* cpu_scalar) {
  flhal_tensor* t = next();
  *t = flhal_tensor{.address = address_of(cpu_scalar), .dtype = flhal_dtype_of(c10::typeMetaToScalarType(cpu_scalar->dtype())),
                    .flags = FLHAL_TENSOR_HOST_SCALAR};
  check_last();
  ++call_.n_inputs;
}

void OpCall::add_as(const c10::TensorImpl* t, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  flhal_tensor* to = next();
  describe(t, to);
  to->sizes = sizes.data();
  to->strides = strides.data();
  to->rank = static_cast<uint16_t>(sizes.size());
  check_last();
}

void OpCall::refuse(const flhal_tensor* t) {
  unwritable_ = t->dtype == 0 ? "dtype unknown to flhal" : "more than 16 dimensions";
}

flhal_attr* OpCall::next_attr(uint32_t key, uint16_t kind, bool dynamic) {
  TORCH_INTERNAL_ASSERT(call_.n_attrs < kMaxAttrs);
  flhal_attr* a = &attrs_[call_.n_attrs++];
  *a = flhal_attr{.key = key, .kind = kind, .flags = static_cast<uint16_t>(dynamic ? FLHAL_ATTR_DYNAMIC : 0u), .count = 1};
  return a;
}
void OpCall::attr(uint32_t key, int64_t value, bool dynamic) { next_attr(key, FLHAL_ATTR_INT, dynamic)->v.i = value; }
void OpCall::attr(uint32_t key, double value, bool dynamic) { next_attr(key, FLHAL_ATTR_FLOAT, dynamic)->v.f = value; }
void OpCall::attr(uint32_t key, const c10::Scalar& value, bool dynamic) {
  if (value.isComplex()) {
    flhal_attr* a = next_attr(key, FLHAL_ATTR_COMPLEX, dynamic);
    a->v.f = value.toComplexDouble().real();
    a->imag = value.toComplexDouble().imag();
  } else if (value.isFloatingPoint()) {
    attr(key, value.toDouble(), dynamic);
  } else {
    attr(key, value.toLong(), dynamic);
  }
}
void OpCall::attr(uint32_t key, c10::IntArrayRef values) {
  flhal_attr* a = next_attr(key, FLHAL_ATTR_INTS, false);
  a->count = static_cast<uint32_t>(values.size());
  a->v.p = values.data();
}
void OpCall::attr(uint32_t key, c10::ArrayRef<double> values) {
  flhal_attr* a = next_attr(key, FLHAL_ATTR_FLOATS, false);
  a->count = static_cast<uint32_t>(values.size());
  a->v.p = values.data();
}
void OpCall::attr(uint32_t key, const std::string& text) {
  flhal_attr* a = next_attr(key, FLHAL_ATTR_STRING, false);
  a->count = static_cast<uint32_t>(text.size());
  a->v.p = text.data();
}
void OpCall::attr(uint32_t key, const flhal_philox* philox) { next_attr(key, FLHAL_ATTR_PHILOX, true)->v.p = philox; }

bool submit(const OpCall& call, c10::DeviceIndex device) {
  if (C10_UNLIKELY(call.unwritable() != nullptr)) {
    set_decline_reason(call.unwritable());
    return false;
  }
  if (C10_UNLIKELY(t_dry_run)) return dry_submit(call_state(), call, device);
  if (CallState* state = t_call_state) state->own_reason = nullptr;
  flhal_status status = flhal_op_run(current_stream(device), call.get());
  if (C10_LIKELY(status == FLHAL_OK)) return true;
  if (status == FLHAL_DECLINED) return false;
  // What the CPU calls an IndexError. Only the kernel saw the index.
  const uint32_t op = call.get()->op;
  if (status == FLHAL_E_INVALID && (op == FLHAL_OP_INDEX_SELECT || op == FLHAL_OP_INDEX_ADD)) {
    const std::string text = last_error_text();
    TORCH_CHECK_INDEX(text.find("out of range") == std::string::npos, text);
  }
  raise_status(status, "flhal_op_run");
}

const char* decline_reason() {
  CallState& state = call_state();
  return state.own_reason ? state.own_reason : flhal_last_decline();
}
void set_decline_reason(const char* static_text) { call_state().own_reason = static_text; }

void dry_run_begin() {
  CallState& state = call_state();
  state.notes.clear();
  t_dry_run = true;
}
std::vector<RouteNote> dry_run_end() {
  CallState& state = call_state();
  t_dry_run = false;
  return std::move(state.notes);
}
void dry_run_note_fallback(const std::string& aten, const char* reason) {
  call_state().notes.push_back({aten, 0, FLHAL_ROUTE_DECLINED, reason ? reason : ""});
}

AtenScope::AtenScope(const std::string* name) {
  CallState& state = call_state();
  before_ = state.aten;
  state.aten = name;
}
AtenScope::~AtenScope() { t_call_state->aten = before_; }

}  // namespace torch_fl
