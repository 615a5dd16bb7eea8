// memory.cc: slabs, copies and fills.
//
// Core asks for large slabs and cuts tensors out of them, so these slots are called rarely and may be slow. A place is a slab
// and an offset on the chip, or (memory == nullptr) a host pointer.
#include <algorithm>
#include <cstring>
#include <string>

#include "chip.h"

namespace chip {

// Counts `bytes` as used, or answers false when they do not fit. Written so that it cannot overflow.
static bool take(flhal_p_device* device, uint64_t bytes) {
#ifdef CHIP_ASYNC
  std::lock_guard lock(device->plugin->mutex);
#endif
  if (bytes > kLargestSlabBytes || bytes > kMemoryBytes - device->used_bytes) return false;
  device->used_bytes += bytes;
  return true;
}

static void give_back(flhal_p_device* device, uint64_t bytes) {
#ifdef CHIP_ASYNC
  std::lock_guard lock(device->plugin->mutex);
#endif
  device->used_bytes -= bytes;
}

// Slot 7. In: bytes, align, kind. Out: memory, and address and host where the chip has them (here: stays 0 and null).
flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  // Pinned and shared memory are kinds for later; core then takes ordinary host memory.
  if (slab->kind != FLHAL_MEM_DEVICE)
    throw flhal::Error(FLHAL_E_UNSUPPORTED, std::string(kName) + ": memory_alloc: this chip has device memory only");

  auto memory = std::make_unique<flhal_p_memory>();
  memory->size = slab->bytes;
  // EXHAUSTED is an expected answer without text: core frees what it can, asks once more, and then tells the user.
  if (!take(device, slab->bytes)) return FLHAL_EXHAUSTED;
  // driver: its own allocation call
  memory->bytes.reset(static_cast<char*>(flhal::host->alloc(slab->bytes, std::max(slab->align, kSlabAlignment))));
  if (memory->bytes == nullptr) {
    give_back(device, slab->bytes);
    return FLHAL_EXHAUSTED;
  }
  slab->memory = memory.release();
  return FLHAL_OK;
}

// Slot 8. No work uses the slab any more; core has waited for that.
void memory_free(flhal_p_device* device, flhal_p_memory* memory) {
  give_back(device, memory->size);
  delete memory;
}

static char* pointer_to(const flhal_p_place& place) {
  return place.memory != nullptr ? place.memory->bytes.get() + place.offset : static_cast<char*>(place.host);
}

static flhal_status run_copy(const flhal_p_copy_v1& copy) {
  char* dst = pointer_to(copy.dst);
  const char* src = pointer_to(copy.src);
  for (uint64_t row = 0; row < copy.rows; ++row)
    std::memcpy(dst + row * copy.dst_pitch, src + row * copy.src_pitch, copy.bytes);
  return FLHAL_OK;
}

// Slot 9. Either side may be on the chip or on the host; `rows` rows of `bytes` bytes, `pitch` bytes from row to row.
#ifndef CHIP_ASYNC
// stream is null for a plugin without streams: the work is finished when we return.
// driver: one call each for host to chip, chip to host and chip to chip.
flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1* copy) { return run_copy(*copy); }
#endif
#ifdef CHIP_ASYNC
// stream null: the work is finished when we return. Else it is queued; core keeps both sides alive until it has run.
// driver: one call each for host to chip, chip to host and chip to chip.
flhal_status copy(flhal_p_device*, flhal_p_stream* stream, const flhal_p_copy_v1* copy) {
  return submit(stream, [copy = *copy] { return run_copy(copy); });
}
#endif

static flhal_status run_fill(char* dst, uint64_t bytes, const char* pattern, uint32_t pattern_bytes) {
  if (bytes == 0) return FLHAL_OK;
  std::memcpy(dst, pattern, pattern_bytes);
  for (uint64_t done = pattern_bytes; done < bytes;) {   // doubles what is written: few calls, no loop over bytes
    uint64_t step = std::min(done, bytes - done);
    std::memcpy(dst + done, dst, step);
    done += step;
  }
  return FLHAL_OK;
}

// Slot 10. The pattern has 1, 2, 4, 8 or 16 bytes and `bytes` is a multiple of it.
#ifndef CHIP_ASYNC
flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes) {
  return run_fill(pointer_to(*place), bytes, static_cast<const char*>(pattern), pattern_bytes);
}
#endif
#ifdef CHIP_ASYNC
flhal_status fill(flhal_p_device*, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes) {
  std::string kept(static_cast<const char*>(pattern), pattern_bytes);
  return submit(stream, [dst = pointer_to(*place), bytes, kept] { return run_fill(dst, bytes, kept.data(), static_cast<uint32_t>(kept.size())); });
}
#endif

}  // namespace chip
