// csrc/scalar.cc: one element to the host: item(), bool(t), float(t). Failed work of the stream is reported here.
#include <c10/core/Scalar.h>
#include <flhal/flhal.h>
#include <torch/library.h>

#include "call.h"
#include "device.h"
#include "errors.h"

namespace torch_fl {
namespace {

template <typename T>
T load(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

at::Scalar make_scalar(const void* bytes, at::ScalarType type) {
  switch (type) {
#define TORCH_FL_CASE(cpp, name) \
  case at::ScalarType::name:     \
    return at::Scalar(load<cpp>(bytes));
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(TORCH_FL_CASE)
    TORCH_FL_CASE(uint16_t, UInt16)
    TORCH_FL_CASE(uint32_t, UInt32)
    TORCH_FL_CASE(uint64_t, UInt64)
#undef TORCH_FL_CASE
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "item: no Python number for ", type);
  }
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  if (C10_UNLIKELY(in_dry_run())) {                   // there are no values; the caller goes on with zero
    const char zeros[16] = {};
    return make_scalar(zeros, self.scalar_type());
  }
  const c10::DeviceIndex index = self.device().index();
  flhal_stream* stream = current_stream(index);
  void* host = nullptr;
  uint64_t ticket = 0;
  check(flhal_host_begin(stream, reinterpret_cast<flhal_addr>(self.const_data_ptr()), self.itemsize(), FLHAL_READ, &host, &ticket),
        "item");
  const at::Scalar value = make_scalar(host, self.scalar_type());
  check(flhal_host_end(stream, ticket), "item");
  return value;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense)); }

}  // namespace
}  // namespace torch_fl
