/* chip.h: the types of this plugin and who implements which slot.
 *
 * A plugin to copy: plain C99, no library. The "chip" is a piece of this process's own heap that nobody else can see: no
 * device addresses, not visible to the host. All traffic goes through copy and fill, exactly as on a card behind a bus.
 * Where a real chip needs its driver, the comment says "driver:".
 *
 *   plugin.c   the exported symbol, the table, init and shutdown      slots 1, 2
 *   device.c   which chips there are, opening and closing one         slots 3 to 6
 *   memory.c   slabs, copies, fills                                   slots 7 to 10 */
#ifdef CHIP_KERNEL
/*   module.c   code for the chip, and launching it                    slots 11 to 14 */
#endif
#ifdef CHIP_ASYNC
/*   stream.c   queues of work, each with a worker of its own          slots 18 to 21
 *   event.c    points in queues                                       slots 22 to 29 */
#endif
#ifndef CHIP_H
#define CHIP_H

#include <flhal/plugin.h>
#ifdef CHIP_ASYNC

#include <pthread.h>
#endif

/* The eight handle types are ours to define; core only passes pointers to them around. */
struct flhal_p_plugin {
  const flhal_host_v1* host;      /* core's functions: alloc, free, log, set_error, config; lives until shutdown returns */
#ifdef CHIP_ASYNC
  pthread_mutex_t mutex;          /* guards what any of these structs changes; not held while work runs                  */
  pthread_cond_t changed;         /* work was queued or has ended. driver: has waiting calls of its own                  */
#endif
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
#ifdef CHIP_KERNEL

/* module.c */
flhal_status chip_module_load(flhal_p_device*, const flhal_p_source_v1*, flhal_p_module** out);
void chip_module_unload(flhal_p_module*);
flhal_status chip_function_get(flhal_p_module*, const char* name, flhal_p_function** out);
flhal_status chip_launch(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*);
#endif
#ifdef CHIP_ASYNC

/* stream.c */
struct flhal_p_stream {
  flhal_p_device* device;
  pthread_t worker;
  struct chip_work *first, **last;   /* the queue; `last` is where the next piece of work is hung                          */
  uint64_t submitted, completed;
  int stop;
  flhal_status failure;              /* the first one of the work so far; kept as long as the stream lives                 */
};

flhal_status chip_stream_create(flhal_p_device*, int32_t priority, uint32_t flags, flhal_p_stream** out);
void chip_stream_destroy(flhal_p_stream*);
flhal_status chip_stream_query(flhal_p_stream*);
flhal_status chip_stream_synchronize(flhal_p_stream*);
/* Queues run(what). `what` is from host->alloc, holds all the work needs (the slot's own arguments end with the call), and is
 * freed afterwards, also when this fails. */
flhal_status chip_enqueue(flhal_p_stream*, flhal_status (*run)(void* what), void* what);
/* The same with a copy of `bytes` bytes. */
flhal_status chip_enqueue_copy(flhal_p_stream*, flhal_status (*run)(void* what), const void* what, uint64_t bytes);

/* event.c */
flhal_status chip_event_create(flhal_p_device*, uint32_t flags, flhal_p_event** out);
void chip_event_destroy(flhal_p_event*);
flhal_status chip_event_record(flhal_p_event*, flhal_p_stream*);
flhal_status chip_event_wait(flhal_p_event*, flhal_p_stream*);
flhal_status chip_event_query(flhal_p_event*);
flhal_status chip_event_synchronize(flhal_p_event*);
flhal_status chip_event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out);
flhal_status chip_event_signal(flhal_p_event*, flhal_status);
#endif

#endif
