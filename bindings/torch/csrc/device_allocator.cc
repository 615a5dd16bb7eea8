// csrc/device_allocator.cc: torch's allocator over flhal's pool.
//
// Threads: any. The deleter never throws and never blocks; in a forked child flhal_free does nothing.
#include "device_allocator.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <flhal/flhal.h>

#include "call.h"
#include "device.h"
#include "errors.h"

namespace torch_fl {

void free_address(void* address) { flhal_free(reinterpret_cast<flhal_addr>(address)); }

c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes) {
  if (C10_UNLIKELY(in_dry_run())) return c10::DataPtr(nullptr, c10::Device(kDeviceType, index));
  flhal_stream* stream = current_stream(index);
  flhal_addr address = 0;
  check(flhal_alloc(stream, bytes, &address), "flhal_alloc");
  void* pointer = reinterpret_cast<void*>(address);
  return c10::DataPtr(pointer, pointer, &free_address, c10::Device(kDeviceType, index));
}

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingDeviceAllocator::DeviceStats;

flhal_memory_stats stats_of(c10::DeviceIndex index) {
  flhal_memory_stats stats{};
  stats.struct_size = sizeof stats;
  check(flhal_memory_get_stats(device_handle(index), &stats), "flhal_memory_get_stats");
  return stats;
}

void put(c10::CachingAllocator::StatArray& array, uint64_t current, uint64_t peak, uint64_t total, uint64_t freed) {
  Stat& all = array[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = static_cast<int64_t>(current);
  all.peak = static_cast<int64_t>(peak);
  all.allocated = static_cast<int64_t>(total);
  all.freed = static_cast<int64_t>(freed);
}

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_address; }
  void copy_data(void* dst, const void* src, std::size_t bytes) const override {
    flhal_memory_place place{};
    place.struct_size = sizeof place;
    check(flhal_memory_lookup(reinterpret_cast<flhal_addr>(dst), &place), "flhal_memory_lookup");
    check(flhal_copy(current_stream(static_cast<c10::DeviceIndex>(place.device)), reinterpret_cast<flhal_addr>(dst),
                     reinterpret_cast<flhal_addr>(src), bytes, 0),
          "flhal_copy");
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      if (device_opened(i)) check(flhal_memory_trim(device_handle(i)), "flhal_memory_trim");
    }
  }
  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    if (pointer.get() == nullptr) return;
    check(flhal_memory_used_on(reinterpret_cast<flhal_addr>(pointer.get()), stream_of(stream.device_index(), stream.id())),
          "flhal_memory_used_on");
  }
  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    DeviceStats out;
    if (!device_opened(index)) {
      device_handle(index);
      return out;
    }
    const flhal_memory_stats s = stats_of(index);
    put(out.allocation, s.n_live, s.n_live, s.n_allocations, s.n_frees);
    put(out.active, s.n_live, s.n_live, s.n_allocations, s.n_frees);
    put(out.segment, s.n_slabs, s.n_slabs, s.n_slabs, 0);
    put(out.allocated_bytes, s.allocated, s.allocated_peak, s.allocated_peak, s.allocated_peak - s.allocated);
    put(out.active_bytes, s.allocated + s.pending_free, s.allocated_peak, s.allocated_peak, s.allocated_peak - s.allocated);
    put(out.reserved_bytes, s.reserved, s.reserved_peak, s.reserved_peak, s.reserved_peak - s.reserved);
    put(out.requested_bytes, s.requested, s.requested_peak, s.requested_peak, s.requested_peak - s.requested);
    out.num_alloc_retries = static_cast<int64_t>(s.n_retries);
    out.num_ooms = static_cast<int64_t>(s.n_out_of_memory);
    out.num_device_alloc = static_cast<int64_t>(s.n_slabs);
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override { device_handle(index); }   // flhal counts from the start
  void resetPeakStats(c10::DeviceIndex index) override {
    check(flhal_memory_reset_peaks(device_handle(index)), "flhal_memory_reset_peaks");
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    current_stream(index);                            // the pool exists once the device is open
    const flhal_memory_stats s = stats_of(index);
    return {s.device_free, s.device_total};
  }
};

Allocator& instance() {
  static Allocator* allocator = new Allocator();      // outlives every tensor
  return *allocator;
}

const bool g_registered = (c10::SetAllocator(kDeviceType, &instance()), true);

}  // namespace

c10::Allocator* device_allocator() { return &instance(); }

void resize_storage(c10::StorageImpl* storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceIndex index = storage->device().index();
  if (bytes == storage->nbytes()) return;
  c10::DataPtr fresh = allocate_on(index, bytes);
  const size_t kept = std::min(bytes, storage->nbytes());
  if (kept != 0 && !in_dry_run()) {
    check(flhal_copy(current_stream(index), reinterpret_cast<flhal_addr>(fresh.get()),
                     reinterpret_cast<flhal_addr>(storage->data()), kept, 0),
          "flhal_copy");
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

}  // namespace torch_fl
