/* device.c: which chips there are, what each can do, and opening one. */
#include "chip.h"

#include <stddef.h>
#include <string.h>

/* Slot 3. Asked once; the answer must not change until shutdown. driver: count without opening a chip. */
flhal_status chip_device_count(flhal_p_plugin* plugin, uint32_t* out) {
  (void)plugin;
  *out = 1;
  return FLHAL_OK;
}

/* Slot 4. `out` comes zeroed; zero means default or unknown, so only what is known is set. Strings stay valid. */
flhal_status chip_device_info(flhal_p_plugin* plugin, uint32_t index, flhal_p_device_info_v1* out) {
  if (index != 0) return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": device_info: there is one chip, its index is 0");

  memcpy(out->uuid, CHIP_UUID, 16);
  out->chip = CHIP_NAME;
  out->product = "RAM chip";
  out->vendor = "Example";
  out->driver = "none";
  out->compute_capability = "1.0";
  out->fingerprint = "1";                             /* change it when compiled code must be compiled again           */
  out->memory_bytes = CHIP_MEMORY_BYTES;
  out->largest_slab_bytes = CHIP_LARGEST_SLAB_BYTES;
  out->slab_alignment = CHIP_SLAB_ALIGNMENT;
#ifndef CHIP_ASYNC
  out->queues = 1;
#endif
#ifndef CHIP_KERNEL
  /* caps stays 0: no device addresses (core gives every slab a range of its own), no view for the host (core stages), no
   * arithmetic. storage_dtypes stays empty: memory may hold every type of scalars.h. */
#endif
#ifdef CHIP_KERNEL
  /* No device addresses (core gives every slab a range of its own), no view for the host (core stages). storage_dtypes stays
   * empty: memory may hold every type of scalars.h. */
  out->dialects = FLHAL_DIALECT_HOST;                 /* yours: "opencl-c-1.2", for which core writes its kernels, too  */
  out->caps = FLHAL_CAP_FP64 | FLHAL_CAP_INT64 | FLHAL_CAP_LANES_ARE_CORES;
#endif
#ifdef CHIP_ASYNC
  out->caps |= FLHAL_CAP_COMPUTE_COPY_OVERLAP | FLHAL_CAP_EVENT_HOST_SIGNAL;
  out->queues = 4;                                    /* as many streams as do work at once                            */
#endif
  out->device_class = FLHAL_DEVICE_CLASS_MOCK;        /* yours: FLHAL_DEVICE_CLASS_ACCELERATOR                         */
  return FLHAL_OK;
}

/* Slot 5. The first call that may be slow: open the chip, start threads. Called once per device until device_close. */
flhal_status chip_device_open(flhal_p_plugin* plugin, uint32_t index, flhal_p_device** out) {
  flhal_p_device* device;
  if (index != 0) return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": device_open: there is one chip, its index is 0");
  device = plugin->host->alloc(sizeof *device, 16);
  if (device == NULL) return FLHAL_E_HOST_MEMORY;
  device->plugin = plugin;
  device->used_bytes = 0;
  *out = device;
  return FLHAL_OK;
}

/* Slot 6. Every slab of the device has been freed. */
void chip_device_close(flhal_p_device* device) { device->plugin->host->free(device); }
