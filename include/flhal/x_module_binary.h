/* flhal/x_module_binary.h: the optional table "x.module_binary": what a plugin compiled, as bytes to keep on disk.
 *
 * A plugin with a compiler returns the table from flhal_plugin_info_v1.optional_table. Core asks a module that was built from
 * source for its binary, keeps it under the source's hash and the device's fingerprint, and loads it next time by module_load
 * with `dialect`, which the device also lists in its `dialects`. A binary is only ever given to a device whose fingerprint
 * equals that of the one it came from; it may still be refused (FLHAL_E_BUILD), and core then compiles the source again.
 * Not part of the frozen 1.0 table. */
#ifndef FLHAL_X_MODULE_BINARY_H
#define FLHAL_X_MODULE_BINARY_H
#include <flhal/plugin.h>
#ifdef __cplusplus
extern "C" {
#endif

#define FLHAL_X_MODULE_BINARY "x.module_binary"
#define FLHAL_ST_X_MODULE_BINARY 256u

typedef struct flhal_x_module_binary_v1 {
  uint32_t struct_size, struct_type; const void* next;
  const char* dialect;                       /* what module_load calls these bytes, e.g. "opencl-binary"; static */
  /* Writes the module's code to `data` and its size to *out_bytes. capacity 0 (data NULL): the size alone. A capacity that is
   * too small is FLHAL_E_INVALID and writes nothing. FLHAL_DECLINED: this module has no such form. May take long; any thread;
   * functions of the module may be launched meanwhile. */
  flhal_status (*get)(flhal_p_module*, void* data, uint64_t capacity, uint64_t* out_bytes);
} flhal_x_module_binary_v1;

#ifdef __cplusplus
}
#endif
#endif
