// csrc/guard.cc: torch's DeviceGuard, streams and events on flhal's.
//
// An event is made at its first record, so torch.Event() costs nothing until then. Events belong to no device in flhal; torch
// gives each its device index, which is only used for error texts there.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <flhal/flhal.h>

#include "device.h"
#include "dtypes.h"
#include "errors.h"

namespace torch_fl {
namespace {

flhal_event* event_from(void* event) { return static_cast<flhal_event*>(event); }
flhal_stream* native(const c10::Stream& stream) { return stream_of(stream.device_index(), stream.id()); }
c10::Stream torch_stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), id);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    return c10::Device(kDeviceType, exchange_current_device(device.index()));
  }
  c10::Device getDevice() const override { return c10::Device(kDeviceType, current_device()); }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    try {
      set_current_device(device.index());
    } catch (...) {                                   // destructors call this; the index was valid when they were made
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    flhal_device_info info{};
    info.struct_size = sizeof info;
    check(flhal_device_get_info(device_handle(checked_index(device)), &info), "flhal_device_get_info");
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (size_t type = 0; type < c10::NUMBER_OF_DEVICE_CAPABILITIES && type < detail::kDtypes.size(); ++type) {
      const flhal_dtype dtype = detail::kDtypes[type];
      if (dtype == 0) continue;
      bool stored = info.n_storage_dtypes == 0;
      for (uint32_t i = 0; i < info.n_storage_dtypes; ++i) stored = stored || info.storage_dtypes[i] == dtype;
      if (stored) capability.capability_data.capability_bits |= 1ull << type;
    }
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = device.has_index() ? device.index() : current_device();
    return torch_stream(index, current_stream_id(index));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return torch_stream(checked_index(device), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getNewStream(device, high_priority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const c10::DeviceIndex index = checked_index(device);
    return torch_stream(index, next_pool_stream(index, priority));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::DeviceIndex index = stream.device_index();
    const c10::Stream before = torch_stream(index, current_stream_id(index));
    set_current_stream(index, stream.id());
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return native(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    const flhal_status status = flhal_stream_query(native(stream));
    if (status == FLHAL_NOT_READY) return false;
    check(status, "flhal_stream_query");
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(flhal_stream_synchronize(native(stream)), "flhal_stream_synchronize");
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    check(flhal_device_synchronize(device_handle(index < 0 ? current_device() : index)), "flhal_device_synchronize");
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index, const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "Event device index ", int(index),
                " does not match recording stream's device index ", int(stream.device_index()), ".");
    if (*event == nullptr) {
      flhal_event* made = nullptr;
      check(flhal_event_create(flag == c10::EventFlag::BACKEND_DEFAULT ? FLHAL_EVENT_WITH_TIMING : 0, &made), "flhal_event_create");
      *event = made;
    }
    check(flhal_event_record(event_from(*event), native(stream)), "flhal_event_record");
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) check(flhal_event_wait(event_from(event), native(stream)), "flhal_event_wait");
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    const flhal_status status = flhal_event_query(event_from(event));
    if (status == FLHAL_NOT_READY) return false;
    check(status, "flhal_event_query");
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) check(flhal_event_synchronize(event_from(event)), "flhal_event_synchronize");
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) flhal_event_release(event_from(event));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    TORCH_CHECK(from != nullptr && to != nullptr,
                "Both events must be created with argument 'enable_timing=True' and recorded before calculating elapsed time.");
    uint64_t ns = 0;
    const flhal_status status = flhal_event_elapsed_ns(event_from(from), event_from(to), &ns);
    TORCH_CHECK(status != FLHAL_NOT_READY, "Both events must be completed before calculating elapsed time.");
    check(status, "flhal_event_elapsed_ns");
    return static_cast<double>(ns) / 1e6;
  }
  void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const override {
    if (pointer.get() == nullptr || pointer.device().type() != kDeviceType) return;
    check(flhal_memory_used_on(reinterpret_cast<flhal_addr>(pointer.get()), native(stream)), "flhal_memory_used_on");
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace torch_fl
