// device.cc: which chips there are, what each can do, and opening one.
#include <cstring>
#include <string>

#include "chip.h"

namespace chip {

// Slot 3. Asked once; the answer must not change until shutdown. driver: count without opening a chip.
flhal_status device_count(flhal_p_plugin*, uint32_t* out) {
  *out = 1;
  return FLHAL_OK;
}

static void check_index(uint32_t index, const char* slot) {
  if (index != 0) throw flhal::Error(FLHAL_E_INVALID, std::string(kName) + ": " + slot + ": there is one chip, its index is 0");
}

// Slot 4. `out` comes zeroed; zero means default or unknown, so only what is known is set. Strings stay valid.
flhal_status device_info(flhal_p_plugin*, uint32_t index, flhal_p_device_info_v1* out) {
  check_index(index, "device_info");
  std::memcpy(out->uuid, kUuid, 16);
  out->chip = kName;
  out->product = "RAM chip";
  out->vendor = "Example";
  out->driver = "none";
  out->compute_capability = "1.0";
  out->fingerprint = "1";                             // change it when compiled code must be compiled again
  out->memory_bytes = kMemoryBytes;
  out->largest_slab_bytes = kLargestSlabBytes;
  out->slab_alignment = kSlabAlignment;
#ifndef CHIP_ASYNC
  out->queues = 1;
#endif
#ifndef CHIP_KERNEL
  // caps stays 0: no device addresses (core gives every slab a range of its own), no view for the host (core stages), no
  // arithmetic. storage_dtypes stays empty: memory may hold every type of scalars.h.
#endif
#ifdef CHIP_KERNEL
  // No device addresses (core gives every slab a range of its own), no view for the host (core stages). storage_dtypes stays
  // empty: memory may hold every type of scalars.h.
  out->dialects = FLHAL_DIALECT_HOST;                 // yours: "opencl-c-1.2", for which core writes its kernels, too
  out->caps = FLHAL_CAP_FP64 | FLHAL_CAP_INT64 | FLHAL_CAP_LANES_ARE_CORES;
#endif
#ifdef CHIP_ASYNC
  out->caps |= FLHAL_CAP_COMPUTE_COPY_OVERLAP | FLHAL_CAP_EVENT_HOST_SIGNAL;
  out->queues = 4;                                    // as many streams as do work at once
#endif
  out->device_class = FLHAL_DEVICE_CLASS_MOCK;        // yours: FLHAL_DEVICE_CLASS_ACCELERATOR
  return FLHAL_OK;
}

// Slot 5. The first call that may be slow: open the chip, start threads. Called once per device until device_close.
#ifndef CHIP_ASYNC
flhal_status device_open(flhal_p_plugin*, uint32_t index, flhal_p_device** out) {
  check_index(index, "device_open");
  *out = new flhal_p_device;
#endif
#ifdef CHIP_ASYNC
flhal_status device_open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
  check_index(index, "device_open");
  *out = new flhal_p_device{plugin};
#endif
  return FLHAL_OK;
}

// Slot 6. Every slab of the device has been freed.
void device_close(flhal_p_device* device) { delete device; }

}  // namespace chip
