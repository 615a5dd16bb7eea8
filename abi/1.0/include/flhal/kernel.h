// flhal/kernel.h: an application's own kernels: modules, functions, launches.
#ifndef FLHAL_KERNEL_H
#define FLHAL_KERNEL_H

#include <flhal/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flhal_module flhal_module;
typedef struct flhal_function flhal_function;   // belongs to its module

// Compiles or loads code. dialect: one of the device's dialects (flhal_device_info). May take long.
// Errors: FLHAL_E_UNSUPPORTED (the text lists the device's dialects); FLHAL_E_BUILD with the build log. Since: 1.0
FLHAL_API flhal_status flhal_module_load(flhal_device* device, const char* dialect, const void* data, uint64_t bytes,
                                         const char* options, flhal_module** out_module);
// Legal while launches are in flight. Since: 1.0
FLHAL_API flhal_status flhal_module_release(flhal_module* module);
// Errors: FLHAL_E_NOT_FOUND. Since: 1.0
FLHAL_API flhal_status flhal_function_get(flhal_module* module, const char* name, flhal_function** out_function);

#define FLHAL_KERNEL_ARG_VALUE  1u   // `size` bytes at `value`
#define FLHAL_KERNEL_ARG_MEMORY 2u   // a device address
#define FLHAL_KERNEL_ARG_LOCAL  3u   // `size` bytes of work-group memory
typedef struct flhal_kernel_arg {
  uint32_t kind, size;
  const void* value;
  flhal_addr address;
} flhal_kernel_arg;

// Enqueues one launch. groups: number of work-groups per dimension; group_size: work-items in each.
// Errors: FLHAL_E_INVALID (an address of another device, a size of 0); the stream's first failure. Since: 1.0
FLHAL_API flhal_status flhal_launch(flhal_stream* stream, flhal_function* function, const uint64_t groups[3],
                                    const uint32_t group_size[3], const flhal_kernel_arg* args, uint32_t n_args);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_KERNEL_H
