// device.cc: counting, info, open, close, budget.
#include <cstring>

#include "mock.h"

namespace mock {
namespace {

struct Chip {
  const char* name, *product, *capability, *pci_address;
  uint64_t memory_bytes;
};
constexpr Chip kChip[kChips] = {{"chip_a", "Mock Chip A", "7.5", "0000:01:00.0", 16ull << 30},
                                {"chip_b", "Mock Chip B", "8.0", "0000:02:00.0", 24ull << 30}};

uint64_t memory_of(uint32_t chip) {
  uint64_t wanted = script().memory_bytes;
  return wanted != 0 ? wanted : kChip[chip].memory_bytes;
}

}  // namespace

Counts& counts(uint32_t chip) {
  static Counts all[kChips];   // trivially destroyed: safe for workers at exit
  return all[chip];
}

namespace slots {

flhal_status device_count(flhal_p_plugin* plugin, uint32_t* out) {
  if (flhal_status s = slot_begin(Slot::device_count, 0); s != FLHAL_OK) return s;
  *out = plugin->n_devices;
  return FLHAL_OK;
}

flhal_status device_info(flhal_p_plugin* plugin, uint32_t index, flhal_p_device_info_v1* out) {
  if (index >= plugin->n_devices) return fail(FLHAL_E_INVALID, "mock: device_info: there is no chip of that index");
  uint32_t chip = plugin->chip_of[index];
  if (flhal_status s = slot_begin(Slot::device_info, chip); s != FLHAL_OK) return s;
  const Script& now = script();
  memcpy(out->uuid, chip == 0 ? "mock-chip-a-0001" : "mock-chip-b-0001", 16);
  out->chip = kChip[chip].name;
  out->product = kChip[chip].product;
  out->vendor = "flhal";
  out->driver = "mock " FLHAL_PLUGIN_VERSION;
  out->compute_capability = kChip[chip].capability;
  out->pci_address = kChip[chip].pci_address;
  out->fingerprint = "mock-1";
  out->dialects = now.no_kernels ? "" : FLHAL_DIALECT_HOST;
  out->caps = FLHAL_CAP_COMPUTE_COPY_OVERLAP | FLHAL_CAP_LANES_ARE_CORES;
  if (now.addresses != Script::Addresses::kNone) out->caps |= FLHAL_CAP_ADDRESSES;
  if (now.addresses == Script::Addresses::kOurs) out->caps |= FLHAL_CAP_ADDRESSES_OURS;
  if (!now.no_fp64) out->caps |= FLHAL_CAP_FP64;
  if (!now.no_int64) out->caps |= FLHAL_CAP_INT64;
  if (!now.no_streams && !now.no_events) out->caps |= FLHAL_CAP_EVENT_HOST_SIGNAL;
  out->memory_bytes = memory_of(chip);
  out->largest_slab_bytes = memory_of(chip);
  out->slab_alignment = 65536;
  out->queues = 4;
  out->preferred_vector_bytes = 16;
  out->max_local_bytes = 65536;
  out->storage_dtypes = plugin->storage_dtypes.data();
  out->n_storage_dtypes = static_cast<uint32_t>(plugin->storage_dtypes.size());
  out->device_class = FLHAL_DEVICE_CLASS_MOCK;
  return FLHAL_OK;
}

flhal_status device_open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
  if (index >= plugin->n_devices) return fail(FLHAL_E_INVALID, "mock: device_open: there is no chip of that index");
  uint32_t chip = plugin->chip_of[index];
  if (flhal_status s = slot_begin(Slot::device_open, chip); s != FLHAL_OK) return s;
  auto* device = new flhal_p_device{plugin, chip, memory_of(chip)};
  plugin->open_devices.fetch_add(1);
  device->counts().live_devices.fetch_add(1);
  register_device(device);
  *out = device;
  return FLHAL_OK;
}

void device_close(flhal_p_device* device) {
  if (device->used_bytes.load() != 0 && !device->lost) misuse(device->chip, "device_close while slabs live");
  unregister_device(device);
  device->counts().live_devices.fetch_sub(1);
  device->plugin->open_devices.fetch_sub(1);
  delete device;
}

flhal_status memory_budget(flhal_p_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  if (flhal_status s = slot_begin(Slot::memory_budget, device->chip); s != FLHAL_OK) return s;
  *total_bytes = device->memory_bytes;
  *free_bytes = device->memory_bytes - device->used_bytes.load();
  return FLHAL_OK;
}

}  // namespace slots
}  // namespace mock
