/* chip.h: the types of this plugin and who implements which slot.
 *
 * A plugin to copy: ten slots, plain C99, no library. The "chip" is a piece of this process's own heap that nobody else can
 * see: no device addresses, not visible to the host. All traffic goes through copy and fill, exactly as on a card behind a
 * bus. Where a real chip needs its driver, the comment says "driver:".
 *
 *   plugin.c   the exported symbol, the table, init and shutdown      slots 1, 2
 *   device.c   which chips there are, opening and closing one         slots 3 to 6
 *   memory.c   slabs, copies, fills                                   slots 7 to 10 */
#ifndef CHIP_H
#define CHIP_H

#include <flhal/plugin.h>

/* The eight handle types are ours to define; core only passes pointers to them around. */
struct flhal_p_plugin {
  const flhal_host_v1* host;      /* core's functions: alloc, free, log, set_error, config; lives until shutdown returns */
};

struct flhal_p_device {
  flhal_p_plugin* plugin;
  uint64_t used_bytes;            /* sum of live slabs; never above CHIP_MEMORY_BYTES */
};

struct flhal_p_memory {           /* one slab */
  char* bytes;                    /* driver: its buffer object */
  uint64_t size;
};

#define CHIP_NAME "ram"                   /* what users type: [a-z0-9_]+ */
#define CHIP_UUID "ram-chip-0000001"      /* 16 bytes count; driver: the serial number, the same in every process and boot */
#define CHIP_MEMORY_BYTES (4ull << 30)
#define CHIP_LARGEST_SLAB_BYTES (1ull << 30)
#define CHIP_SLAB_ALIGNMENT 256ull

/* Leaves a sentence for the user and gives `status` back, so that a slot can end: return chip_fail(...); */
flhal_status chip_fail(const flhal_p_plugin* plugin, flhal_status status, const char* text);

/* device.c */
flhal_status chip_device_count(flhal_p_plugin*, uint32_t* out);
flhal_status chip_device_info(flhal_p_plugin*, uint32_t index, flhal_p_device_info_v1* out);
flhal_status chip_device_open(flhal_p_plugin*, uint32_t index, flhal_p_device** out);
void chip_device_close(flhal_p_device*);

/* memory.c */
flhal_status chip_memory_alloc(flhal_p_device*, flhal_p_slab_v1* slab);
void chip_memory_free(flhal_p_device*, flhal_p_memory*);
flhal_status chip_copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*);
flhal_status chip_fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t bytes, const void* pattern,
                       uint32_t pattern_bytes);

#endif
