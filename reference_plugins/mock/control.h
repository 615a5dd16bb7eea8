/* control.h: the table "x.mock.control" through which tests steer and count the mock chips.
 *
 * Get it from the very library core has loaded: dlopen() the same path, call flhal_plugin_v1(NULL, &info), then
 * info.optional_table("x.mock.control", 1). tests/support/mock_control.h and .py do that. Any thread may call. */
#ifndef FLHAL_MOCK_CONTROL_H
#define FLHAL_MOCK_CONTROL_H

#include <flhal/scalars.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLHAL_MOCK_CONTROL_NAME "x.mock.control"
#define FLHAL_MOCK_CONTROL_VERSION 1u
#define FLHAL_MOCK_ALL_DEVICES 0xffffffffu

/* Every field is a uint64_t, so that a reader without this header can take it as an array. */
typedef struct flhal_mock_counts {
  uint64_t live_devices, live_slabs, live_slab_bytes, live_streams, live_events, live_modules, live_plans, live_host_views;
  uint64_t copies, fills, launches, plan_runs;              /* submissions accepted                                 */
  uint64_t plan_creates, declines, records, waits;
  uint64_t bytes_to_device, bytes_to_host, bytes_on_device; /* by copies, counted when they run                     */
  uint64_t bytes_filled;
  uint64_t queued;                                          /* submitted and not finished, over all streams         */
  uint64_t misuse;       /* broken promises of core: two submissions on one stream at once, a handle destroyed while
                            work uses it, an address that does not belong to its slab; each is also logged          */
} flhal_mock_counts;

typedef struct flhal_mock_control_v1 {
  uint32_t struct_size, version;
  /* Replaces the script (see README.md for the keys) and starts its call counts from 0. NULL: the environment's. What is
   * read once per process (chips, memory, dtypes, which slots exist) stays. Returns FLHAL_E_INVALID for a bad text. */
  flhal_status (*script)(const char* text);
  /* Workers stop before their next piece of work until release(); submissions still return at once. */
  void (*hold)(void);
  void (*release)(void);
  /* While held: lets `n` pieces of work through, from whichever streams come first. */
  void (*step)(uint32_t n);
  /* index: 0 chip_a, 1 chip_b (as the plugin counts), or FLHAL_MOCK_ALL_DEVICES. bytes: sizeof(*out). */
  void (*counts)(uint32_t index, flhal_mock_counts* out, uint64_t bytes);
  /* From now on every call on the device answers FLHAL_E_DEVICE_LOST, queued work ends with it. */
  void (*lose)(uint32_t index);
  /* The readable and writable alias of a device address; NULL when no live slab holds it. */
  void* (*inside)(uint64_t address);
} flhal_mock_control_v1;

#ifdef __cplusplus
}
#endif
#endif
