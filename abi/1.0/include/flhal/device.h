// flhal/device.h: finding chips and opening them. Counting opens nothing and starts no driver.
#ifndef FLHAL_DEVICE_H
#define FLHAL_DEVICE_H

#include <flhal/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flhal_device flhal_device;   // lives as long as the process; never freed by the application

// Adds one library, manifest or folder to what the first count will look at.
// Errors: FLHAL_E_INVALID after the first count (the list is frozen), or when the path does not exist. Since: 1.0
FLHAL_API flhal_status flhal_plugin_add(const char* path);

// How many devices there are. The first call of the process looks for plugins, asks each for its devices (drivers
// that need it in a child process) and freezes the list: an index never changes its meaning. What did not load is in
// flhal_report("load"). Never fails: 0 when there is none. Since: 1.0
FLHAL_API uint32_t flhal_device_count(void);

// The device of an index below the count; NULL otherwise (the text says how many there are). Since: 1.0
FLHAL_API flhal_device* flhal_device_at(uint32_t index);

// Finds an index by name: "chip_a", "chip_a:1" (the second chip_a), "plugin/chip_a", "uuid:0123...", or "2".
// Errors: FLHAL_E_NOT_FOUND; the text lists the valid names. FLHAL_E_INVALID for a name that two plugins share (the
// text says how to tell them apart). Since: 1.0
FLHAL_API flhal_status flhal_device_find(const char* name, uint32_t* out_index);

#define FLHAL_DEVICE_CLASS_ACCELERATOR 0u
#define FLHAL_DEVICE_CLASS_GPU         1u
#define FLHAL_DEVICE_CLASS_HOST        2u
#define FLHAL_DEVICE_CLASS_CPU_DRIVER  3u   // a processor behind another driver, e.g. an OpenCL CPU device
#define FLHAL_DEVICE_CLASS_MOCK        4u

#define FLHAL_DEVICE_STATE_CLOSED 0u
#define FLHAL_DEVICE_STATE_OPEN   1u
#define FLHAL_DEVICE_STATE_LOST   2u

// What is known of a device. Fill struct_size with sizeof; the rest is written up to that size. Strings live as long
// as the process and are never NULL.
typedef struct flhal_device_info {
  uint32_t struct_size, index;
  const char* name;                 // unique in the process, what users type: "chip_a", or "plugin/chip_a"
  const char* chip, *plugin;        // the chip's own short name; the plugin's id
  const char* product, *vendor, *driver, *plugin_version;
  const char* compute_capability;   // "7.5", or "" when the maker has no such number
  const char* pci_address, *dialects;
  uint8_t     uuid[16];
  uint64_t    caps;                 // FLHAL_CAP_* of plugin.h
  uint64_t    memory_bytes, largest_allocation_bytes;
  const flhal_dtype* storage_dtypes;
  uint32_t    n_storage_dtypes;
  uint32_t    device_class, state, queues;
  uint32_t    is_asynchronous;      // the plugin has streams of its own
  uint32_t    dlpack_device_type;
  uint32_t    has_ops, has_kernels; // the plugin offers native ops; runs portable kernels
} flhal_device_info;

// Errors: FLHAL_E_INVALID. Since: 1.0
FLHAL_API flhal_status flhal_device_get_info(flhal_device* device, flhal_device_info* out_info);

// Starts the plugin's driver for this device. Everything that needs it calls it by itself. May take long. Since: 1.0
FLHAL_API flhal_status flhal_device_open(flhal_device* device);

// Waits for all work on all streams of the device. Returns its first failure. Since: 1.0
FLHAL_API flhal_status flhal_device_synchronize(flhal_device* device);

// Closes and opens a LOST device again. Its memory and handles stay invalid. Since: 1.0
FLHAL_API flhal_status flhal_device_reset_error(flhal_device* device);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_DEVICE_H
