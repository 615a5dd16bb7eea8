// csrc/factories.cc: fresh tensors, resizing, set_ and record_stream. All in stream order; nothing is initialised.
#include "factories.h"

#include <ATen/Context.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/set_native.h>
#include <flhal/flhal.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>

#include "config.h"
#include "copy.h"
#include "device.h"
#include "device_allocator.h"
#include "dtypes.h"
#include "errors.h"

namespace torch_fl {

namespace {

std::atomic<uint64_t> g_storable[kMaxDevices];        // one bit per scalar type; bit 63: asked

uint64_t ask_storable(c10::DeviceIndex index) {
  flhal_device_info info{};
  info.struct_size = sizeof info;
  check(flhal_device_get_info(device_handle(index), &info), "flhal_device_get_info");
  uint64_t bits = 1ull << 63;
  for (size_t type = 0; type < detail::kDtypes.size() && type < 63; ++type) {
    const flhal_dtype dtype = detail::kDtypes[type];
    bool stored = dtype != 0 && info.n_storage_dtypes == 0;
    for (uint32_t i = 0; dtype != 0 && i < info.n_storage_dtypes; ++i) stored = stored || info.storage_dtypes[i] == dtype;
    if (stored) bits |= 1ull << type;
  }
  g_storable[index].store(bits, std::memory_order_relaxed);
  return bits;
}

bool holds(at::ScalarType dtype, c10::DeviceIndex index) {
  uint64_t bits = g_storable[index].load(std::memory_order_relaxed);
  if (__builtin_expect(bits == 0, 0)) bits = ask_storable(index);
  const auto type = static_cast<unsigned>(dtype);
  return type < 63 && ((bits >> type) & 1) != 0;
}

// What a tensor of `dtype` is on a chip that cannot hold it: float32 for float64 where the user has said so, else an error.
at::ScalarType instead_of(at::ScalarType dtype, c10::DeviceIndex index) {
  const bool demotable = dtype == at::kDouble && holds(at::kFloat, index);
  const std::string policy = config_text("float64");
  flhal_device_info info{};
  info.struct_size = sizeof info;
  check(flhal_device_get_info(device_handle(index), &info), "flhal_device_get_info");
  const bool known = flhal_dtype_of(dtype) != 0;
  if (demotable && policy == "demote") {
    TORCH_WARN_ONCE("torch_fl: ", info.name, " cannot hold float64; tensors of it become float32 (set_float64 is 'demote')");
    return at::kFloat;
  }
  TORCH_CHECK_TYPE(false, kDeviceName, ":", int(index), " (", info.name, ") cannot hold ", dtype, ": ",
                   known ? "the chip has no such type" : "flhal has no such type",
                   "; convert on the CPU first, e.g. tensor.to(torch.float32).to('", kDeviceName, ":", int(index), "')",
                   demotable ? ", or let it become float32 everywhere: torch_fl.set_float64('demote')" : "");
}

at::Tensor make_dense(c10::DeviceIndex index, size_t bytes, caffe2::TypeMeta type, at::IntArrayRef sizes, int64_t numel) {
  c10::Storage storage(c10::make_intrusive<FlStorage>(bytes, allocate_on(index, bytes), device_allocator()));
  return at::Tensor(c10::make_intrusive<FlTensor>(std::move(storage), type, sizes, numel));
}

// The open device needs no look; any other index is opened, or refused.
void check_device(c10::DeviceIndex index) {
  const ThreadState* state = t_state;
  if (C10_LIKELY(state != nullptr && static_cast<unsigned>(index) < kMaxDevices && state->streams[index] != nullptr)) return;
  device_handle(index);
}

}  // namespace

at::ScalarType storable(at::ScalarType dtype, c10::DeviceIndex index) {
  return __builtin_expect(holds(dtype, index), 1) ? dtype : instead_of(dtype, index);
}

at::Tensor empty_contiguous(at::IntArrayRef sizes, at::ScalarType dtype, c10::DeviceIndex index) {
  check_device(index);
  dtype = storable(dtype, index);
  const caffe2::TypeMeta type = c10::scalarTypeToTypeMeta(dtype);
  int64_t signs = 0, numel = 1, bytes;
  bool fits = true;
  for (int64_t size : sizes) {
    signs |= size;
    fits &= !__builtin_mul_overflow(numel, size, &numel);
  }
  fits &= !__builtin_mul_overflow(numel, static_cast<int64_t>(type.itemsize()), &bytes);
  if (C10_UNLIKELY(!fits || signs < 0)) {       // in torch's words; a 0 among sizes too large is its own case
    at::detail::check_size_nonnegative(sizes);
    bytes = static_cast<int64_t>(at::detail::computeStorageNbytesContiguous(sizes, type.itemsize()));
    numel = c10::multiply_integers(sizes);
  }
  return make_dense(index, static_cast<size_t>(bytes), type, sizes, numel);
}

at::Tensor empty_like_model(const c10::TensorImpl* model) {
  const int64_t numel = model->numel();
  return make_dense(model->device().index(), static_cast<size_t>(numel) * model->itemsize(), model->dtype(), model->sizes(), numel);
}

at::Tensor empty_like_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, c10::DeviceIndex index) {
  at::detail::check_size_nonnegative(sizes);
  check_device(index);
  dtype = storable(dtype, index);
  TORCH_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  at::Tensor out = make_dense(index, bytes, c10::scalarTypeToTypeMeta(dtype), {0}, 0);
  out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return out;
}

void reshape_tensor(c10::TensorImpl* self, at::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  if (self->sizes() == sizes && (!strides || self->strides() == *strides)) return;
  const size_t itemsize = self->dtype().itemsize();
  at::detail::check_size_nonnegative(sizes);
  // Memory first: a tensor that gets none keeps its sizes, instead of reaching past its storage.
  const size_t bytes = strides ? at::detail::computeStorageNbytes(sizes, *strides, itemsize, self->storage_offset())
                               : at::detail::computeStorageNbytesContiguous(sizes, itemsize, self->storage_offset());
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (!empty) {
    const c10::Storage& storage = self->unsafe_storage();
    TORCH_CHECK(storage, "Tensor: invalid null storage");
    if (bytes > storage.nbytes()) resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
  if (strides) self->set_sizes_and_strides(sizes, *strides);
  else self->generic_set_sizes_contiguous(sizes);
}

namespace {

c10::DeviceIndex index_for(std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  if (!device.has_value()) return current_device();
  if (C10_LIKELY(device->type() == kDeviceType && device->has_index())) return device->index();   // check_device looks at it
  return checked_index(*device);
}

at::ScalarType dtype_for(std::optional<at::ScalarType> dtype) {
  return dtype.has_value() ? *dtype : c10::typeMetaToScalarType(c10::get_default_dtype());
}

// torch.use_deterministic_algorithms fills fresh memory, so that reading it by mistake shows.
at::Tensor deterministic(at::Tensor out) {
  if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory())) {
    const bool nan = at::isFloatingType(out.scalar_type()) || at::isComplexType(out.scalar_type());
    at::Tensor value = at::detail::empty_cpu({}, out.scalar_type(), false, std::nullopt);
    std::memset(value.mutable_data_ptr(), nan ? 0xff : 0x7f, value.nbytes());
    if (out.scalar_type() == at::kBool) std::memset(value.mutable_data_ptr(), 1, 1);
    copy_into(out, value, false);
  }
  return out;
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                               std::optional<c10::Device> device, std::optional<bool> pin_memory,
                               std::optional<at::MemoryFormat> format) {
  const c10::DeviceIndex index = index_for(device, pin_memory);
  at::Tensor out = empty_contiguous(sizes, dtype_for(dtype), index);
  if (format.has_value() && *format != at::MemoryFormat::Contiguous) out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return deterministic(std::move(out));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  return deterministic(empty_like_strided(sizes, strides, dtype_for(dtype), index_for(device, pin_memory)));
}

// Two factories that torch keeps per backend though they are pure arithmetic: made on the host, then moved.
at::Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  at::Tensor host = at::tril_indices(rows, columns, offset, dtype.value_or(at::kLong), layout, c10::Device(c10::kCPU), false);
  at::Tensor out = empty_contiguous(host.sizes(), host.scalar_type(), index_for(device, pin_memory));
  copy_into(out, host, false);
  return out;
}
at::Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  at::Tensor host = at::triu_indices(rows, columns, offset, dtype.value_or(at::kLong), layout, c10::Device(c10::kCPU), false);
  at::Tensor out = empty_contiguous(host.sizes(), host.scalar_type(), index_for(device, pin_memory));
  copy_into(out, host, false);
  return out;
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  reshape_tensor(self.unsafeGetTensorImpl(), sizes, std::nullopt);
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  at::OptionalIntArrayRef given = strides.data() != nullptr ? at::OptionalIntArrayRef(strides) : std::nullopt;
  reshape_tensor(self.unsafeGetTensorImpl(), sizes, given);
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, allocate_on(self.device().index(), 0), device_allocator(), true);
  return set_storage(self, std::move(storage), 0, {0}, {});
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.device().type() == kDeviceType) {
    resize_(dst, self.sizes(), std::nullopt);
  } else {
    at::native::resize_output(dst, self.sizes());
  }
  copy_into(dst, self, false);
  return dst;
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  TORCH_CHECK(stream.device_type() == kDeviceType, "record_stream: expected a stream of ", kDeviceName, ", got one of ",
              stream.device().str());
  const c10::DataPtr& pointer = self.storage().data_ptr();
  if (pointer.get() == nullptr) return;
  check(flhal_memory_used_on(reinterpret_cast<flhal_addr>(pointer.get()), stream_of(stream.device_index(), stream.id())),
        "flhal_memory_used_on");
}

// Without it Module.to makes new Parameters (ties and an earlier optimizer are lost) and `p.data = x` is refused.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  auto dense = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.device().is_cpu() || t.device().type() == kDeviceType) && !t.is_quantized();
  };
  if (dense(self) && dense(from)) return true;
  return self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("tril_indices", TORCH_FN(tril_indices));
  m.impl("triu_indices", TORCH_FN(triu_indices));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}

TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type)); }

}  // namespace

void resize_output(const at::Tensor& out, at::IntArrayRef sizes) {
  if (at::native::resize_output_check(out, sizes)) resize_(out, sizes, std::nullopt);
}

}  // namespace torch_fl
