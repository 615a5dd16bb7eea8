// csrc/hooks.cc: what torch asks a backend in general: devices, generators, pinned memory. Registered when the library loads,
// before anything can call backward() (which asks it).
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <flhal/flhal.h>

#include "autograd_engine.h"
#include "device.h"
#include "device_allocator.h"
#include "errors.h"
#include "generator.h"
#include "host_allocator.h"

namespace torch_fl {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  // The autograd engine asks this for each device right before a backward, which makes it the place to see to its threads.
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    if (!device_opened(index)) return false;
    ensure_engine_threads(device_count());
    return true;
  }
  void init() const override {}

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return exchange_current_device(index); }
  // Like exchangeDevice: choosing a device opens nothing here, so there is no context to spare.
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchange_current_device(index); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
  at::Device getDeviceFromPtr(void* data) const override {
    flhal_memory_place place{};
    place.struct_size = sizeof place;
    check(flhal_memory_lookup(reinterpret_cast<flhal_addr>(data), &place), "flhal_memory_lookup");
    return at::Device(kDeviceType, static_cast<c10::DeviceIndex>(place.device));
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};

Hooks g_hooks;
const bool g_registered = (at::RegisterPrivateUse1HooksInterface(&g_hooks), true);

}  // namespace
}  // namespace torch_fl
