/* memory.c: slabs, copies and fills.
 *
 * Core asks for large slabs and cuts tensors out of them, so these slots are called rarely and may be slow. A place is a slab
 * and an offset on the chip, or (memory == NULL) a host pointer. */
#include "chip.h"

#include <stddef.h>
#include <string.h>

/* What a slot answers when a struct came with an extension on `next` that may not be ignored. */
#define REFUSE_EXTENSION(device, slot) \
  chip_fail((device)->plugin, FLHAL_E_UNSUPPORTED, \
            CHIP_NAME ": " slot " needs an extension that this plugin does not know; install a newer plugin")

/* Counts `bytes` as used; 0 when they do not fit. The comparison is written so that it cannot overflow. */
static int take(flhal_p_device* device, uint64_t bytes) {
  int fits;
#ifdef CHIP_ASYNC
  pthread_mutex_lock(&device->plugin->mutex);
#endif
  fits = bytes <= CHIP_LARGEST_SLAB_BYTES && bytes <= CHIP_MEMORY_BYTES - device->used_bytes;
  if (fits) device->used_bytes += bytes;
#ifdef CHIP_ASYNC
  pthread_mutex_unlock(&device->plugin->mutex);
#endif
  return fits;
}

static void give_back(flhal_p_device* device, uint64_t bytes) {
#ifdef CHIP_ASYNC
  pthread_mutex_lock(&device->plugin->mutex);
#endif
  device->used_bytes -= bytes;
#ifdef CHIP_ASYNC
  pthread_mutex_unlock(&device->plugin->mutex);
#endif
}

/* Slot 7. In: bytes, align, kind. Out: memory, and address and host where the chip has them (here: stays 0 and NULL). */
flhal_status chip_memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  const flhal_host_v1* host = device->plugin->host;
  flhal_p_memory* memory;

  if (flhal_needed_extension(slab->next)) return REFUSE_EXTENSION(device, "memory_alloc");

  /* Pinned and shared memory are kinds for later; core then takes ordinary host memory. */
  if (slab->kind != FLHAL_MEM_DEVICE)
    return chip_fail(device->plugin, FLHAL_E_UNSUPPORTED, CHIP_NAME ": memory_alloc: this chip has device memory only");

  memory = host->alloc(sizeof *memory, 16);
  if (memory == NULL) return FLHAL_E_HOST_MEMORY;
  memory->size = slab->bytes;
  memory->bytes = NULL;
  /* EXHAUSTED is an expected answer without text: core frees what it can, asks once more, and then tells the user. */
  if (take(device, slab->bytes)) {
    /* driver: its own allocation call */
    memory->bytes = host->alloc(slab->bytes, slab->align > CHIP_SLAB_ALIGNMENT ? slab->align : CHIP_SLAB_ALIGNMENT);
    if (memory->bytes == NULL) give_back(device, slab->bytes);
  }
  if (memory->bytes == NULL) {
    host->free(memory);
    return FLHAL_EXHAUSTED;
  }
  slab->memory = memory;
  return FLHAL_OK;
}

/* Slot 8. No work uses the slab any more; core has waited for that. */
void chip_memory_free(flhal_p_device* device, flhal_p_memory* memory) {
  const flhal_host_v1* host = device->plugin->host;
  give_back(device, memory->size);
  host->free(memory->bytes);
  host->free(memory);
}

static char* pointer_to(const flhal_p_place* place) {
  return place->memory != NULL ? place->memory->bytes + place->offset : (char*)place->host;
}

#ifndef CHIP_ASYNC
/* Slot 9. Either side may be on the chip or on the host; `rows` rows of `bytes` bytes, `pitch` bytes from row to row.
 * stream is NULL for a plugin without streams: the work is finished when we return.
 * driver: one call each for host to chip, chip to host and chip to chip. */
flhal_status chip_copy(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_copy_v1* copy) {
#endif
#ifdef CHIP_ASYNC
static flhal_status run_copy(void* what) {
  const flhal_p_copy_v1* copy = what;
#endif
  char* dst = pointer_to(&copy->dst);
  const char* src = pointer_to(&copy->src);
  uint64_t row;
#ifndef CHIP_ASYNC
  (void)stream;
  if (flhal_needed_extension(copy->next)) return REFUSE_EXTENSION(device, "copy");
#endif
  for (row = 0; row < copy->rows; ++row)
    memcpy(dst + row * copy->dst_pitch, src + row * copy->src_pitch, copy->bytes);
  return FLHAL_OK;
}

#ifdef CHIP_ASYNC
/* Slot 9. Either side may be on the chip or on the host; `rows` rows of `bytes` bytes, `pitch` bytes from row to row.
 * stream NULL: the work is finished when we return. Else it is queued; core keeps both sides alive until it has run.
 * driver: one call each for host to chip, chip to host and chip to chip. */
flhal_status chip_copy(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_copy_v1* copy) {
  flhal_p_copy_v1 now = *copy;
  if (flhal_needed_extension(copy->next)) return REFUSE_EXTENSION(device, "copy");
  return stream != NULL ? chip_enqueue_copy(stream, run_copy, &now, sizeof now) : run_copy(&now);
}

struct fill {
  char* dst;
  uint64_t bytes;
  char pattern[16];
  uint32_t pattern_bytes;
};

static flhal_status run_fill(void* what) {
  const struct fill* fill = what;
  char* dst = fill->dst;
  const char* pattern = fill->pattern;
  uint64_t bytes = fill->bytes, pattern_bytes = fill->pattern_bytes, done = pattern_bytes;
#endif
#ifndef CHIP_ASYNC
/* Slot 10. The pattern has 1, 2, 4, 8 or 16 bytes and `bytes` is a multiple of it. */
flhal_status chip_fill(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes) {
  char* dst = pointer_to(place);
  uint64_t done = pattern_bytes;
  (void)device;
  (void)stream;
#endif
  if (bytes == 0) return FLHAL_OK;
  memcpy(dst, pattern, pattern_bytes);
  while (done < bytes) {                              /* doubles what is written: few calls, no loop over bytes */
    uint64_t step = done < bytes - done ? done : bytes - done;
    memcpy(dst + done, dst, step);
    done += step;
  }
  return FLHAL_OK;
}
#ifdef CHIP_ASYNC

/* Slot 10. The pattern has 1, 2, 4, 8 or 16 bytes and `bytes` is a multiple of it. */
flhal_status chip_fill(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes) {
  struct fill now = {.dst = pointer_to(place), .bytes = bytes, .pattern_bytes = pattern_bytes};
  (void)device;
  memcpy(now.pattern, pattern, pattern_bytes);
  return stream != NULL ? chip_enqueue_copy(stream, run_fill, &now, sizeof now) : run_fill(&now);
}
#endif
