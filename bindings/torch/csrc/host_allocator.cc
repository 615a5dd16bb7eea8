// csrc/host_allocator.cc: pinned host memory over flhal_host_alloc. Reuse, and waiting for copies in flight, are flhal's.
#include "host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <flhal/flhal.h>

#include <atomic>

#include "device.h"
#include "errors.h"

namespace torch_fl {

bool is_pinned(const void* pointer) noexcept { return pointer != nullptr && flhal_host_is_pinned(pointer) == FLHAL_OK; }

namespace {

std::atomic<int64_t> g_live{0}, g_allocated{0}, g_freed{0};

void free_pinned(void* pointer) {
  if (pointer == nullptr) return;
  flhal_host_free(pointer);
  g_live.fetch_sub(1, std::memory_order_relaxed);
  g_freed.fetch_add(1, std::memory_order_relaxed);
}

// Whose pinned memory it is does not matter to a copy. A program that names its chips by index must not open another one for it.
c10::DeviceIndex pinning_device() {
  const c10::DeviceIndex current = current_device();
  if (device_opened(current)) return current;
  for (c10::DeviceIndex i = 0; i < device_count(); ++i)
    if (device_opened(i)) return i;
  return current;
}

struct HostAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* pointer = nullptr;
    if (bytes != 0) {
      check(flhal_host_alloc(device_handle(pinning_device()), bytes, &pointer), "flhal_host_alloc");
      g_live.fetch_add(1, std::memory_order_relaxed);
      g_allocated.fetch_add(1, std::memory_order_relaxed);
    }
    return {pointer, pointer, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* dst, const void* src, std::size_t bytes) const override { default_copy_data(dst, src, bytes); }
  bool record_event(void* pointer, void*, c10::Stream stream) override {
    return flhal_host_used_on(pointer, stream_of(stream.device_index(), stream.id())) == FLHAL_OK;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    at::HostStats stats;
    stats.active_requests.current = stats.allocations.current = g_live.load();
    stats.num_host_alloc = g_allocated.load();
    stats.num_host_free = g_freed.load();
    return stats;
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

HostAllocator& instance() {
  static HostAllocator* allocator = new HostAllocator();
  return *allocator;
}

const bool g_registered = (at::setHostAllocator(kDeviceType, &instance()), true);

}  // namespace

c10::Allocator* host_allocator() { return &instance(); }

}  // namespace torch_fl
