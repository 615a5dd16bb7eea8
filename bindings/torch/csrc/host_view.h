// csrc/host_view.h: a device range as host memory for as long as the object lives (flhal_host_begin/end).
#pragma once

#include <ATen/core/Tensor.h>
#include <flhal/memory.h>

namespace torch_fl {

// Bytes [begin, end) of its storage that a tensor touches; begin == end for an empty tensor.
struct ByteRange {
  size_t begin = 0, end = 0;
};
ByteRange touched_bytes(const at::Tensor& tensor);

// True when the host sees the device's memory as it is: mapping costs nothing.
bool host_visible(c10::DeviceIndex index);

class HostView {
 public:
  HostView(flhal_stream* stream, flhal_addr address, uint64_t bytes, uint32_t access);
  HostView(HostView&& other) noexcept;
  HostView& operator=(HostView&&) = delete;
  ~HostView();                         // ends it without raising, when end() was not reached
  void end();                          // writes back; raises the stream's failure
  void* host() const { return host_; }

 private:
  flhal_stream* stream_ = nullptr;
  void* host_ = nullptr;
  uint64_t ticket_ = 0;
  bool open_ = false;
};

// A CPU tensor of the same sizes, strides, dtype, conj and neg over `host`, which holds the bytes from `range.begin` on.
at::Tensor cpu_twin(const at::Tensor& tensor, const c10::Storage& storage, size_t storage_begin);
c10::Storage borrow_host(void* host, size_t bytes);

}  // namespace torch_fl
