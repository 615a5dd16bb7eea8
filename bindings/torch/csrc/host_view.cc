// csrc/host_view.cc: a device range as host memory. On unified memory this is the memory itself, elsewhere core stages it.
#include "host_view.h"

#include <c10/core/CPUAllocator.h>
#include <flhal/flhal.h>
#include <flhal/plugin.h>   // FLHAL_CAP_*

#include <atomic>

#include "device.h"
#include "errors.h"
#include "tensor_parts.h"

namespace torch_fl {

ByteRange touched_bytes(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const size_t itemsize = tensor.itemsize();
  size_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += static_cast<size_t>(tensor.size(d) - 1) * static_cast<size_t>(tensor.stride(d));
  const size_t begin = static_cast<size_t>(tensor.storage_offset()) * itemsize;
  return {begin, begin + (last + 1) * itemsize};
}

bool host_visible(c10::DeviceIndex index) {
  static std::atomic<int8_t> known[kMaxDevices];      // 0 not asked, 1 no, 2 yes
  int8_t answer = known[index].load(std::memory_order_relaxed);
  if (answer == 0) {
    flhal_device_info info{};
    info.struct_size = sizeof info;
    check(flhal_device_get_info(device_handle(index), &info), "flhal_device_get_info");
    answer = (info.caps & FLHAL_CAP_HOST_VISIBLE) != 0 ? 2 : 1;
    known[index].store(answer, std::memory_order_relaxed);
  }
  return answer == 2;
}

HostView::HostView(flhal_stream* stream, flhal_addr address, uint64_t bytes, uint32_t access) : stream_(stream) {
  if (bytes == 0) return;
  check(flhal_host_begin(stream, address, bytes, access, &host_, &ticket_), "flhal_host_begin");
  open_ = true;
}

HostView::HostView(HostView&& other) noexcept
    : stream_(other.stream_), host_(other.host_), ticket_(other.ticket_), open_(std::exchange(other.open_, false)) {}

HostView::~HostView() {
  if (open_) flhal_host_end(stream_, ticket_);        // a failure shows at the stream's next use
}

void HostView::end() {
  if (!open_) return;
  open_ = false;
  check(flhal_host_end(stream_, ticket_), "flhal_host_end");
}

c10::Storage borrow_host(void* host, size_t bytes) {
  // Resizable with torch's allocator: an out= tensor may outgrow the borrowed bytes; the caller then sees another pointer.
  return c10::Storage(c10::make_intrusive<FlStorage>(bytes, c10::DataPtr(host, c10::Device(c10::kCPU)), c10::GetCPUAllocator()));
}

at::Tensor cpu_twin(const at::Tensor& tensor, const c10::Storage& storage, size_t storage_begin) {
  const size_t offset_bytes = static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
  const size_t offset = offset_bytes >= storage_begin ? (offset_bytes - storage_begin) / tensor.itemsize() : 0;  // empty: any
  at::Tensor twin = at::detail::make_tensor<FlTensor>(FlTensor::OnHost(), c10::Storage(storage), tensor.unsafeGetTensorImpl(),
                                                      static_cast<int64_t>(offset));
  c10::TensorImpl* impl = twin.unsafeGetTensorImpl();
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return twin;
}

}  // namespace torch_fl
