// memory.cc: slabs, copies and fills.
//
// Core asks for large slabs and cuts tensors out of them, so these slots are called rarely and may be slow. A place is a slab
// and an offset on the chip, or (memory == nullptr) a host pointer.
#include <algorithm>
#include <cstring>
#include <string>

#include "chip.h"

namespace chip {

// Slot 7. In: bytes, align, kind. Out: memory, and address and host where the chip has them (here: stays 0 and null).
flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  // Pinned and shared memory are kinds for later; core then takes ordinary host memory.
  if (slab->kind != FLHAL_MEM_DEVICE)
    throw flhal::Error(FLHAL_E_UNSUPPORTED, std::string(kName) + ": memory_alloc: this chip has device memory only");

  // EXHAUSTED is an expected answer without text: core frees what it can, asks once more, and then tells the user. The
  // comparison is written so that it cannot overflow.
  if (slab->bytes > kLargestSlabBytes || slab->bytes > kMemoryBytes - device->used_bytes) return FLHAL_EXHAUSTED;

  auto memory = std::make_unique<flhal_p_memory>();
  memory->size = slab->bytes;
  // driver: its own allocation call
  memory->bytes.reset(static_cast<char*>(flhal::host->alloc(slab->bytes, std::max(slab->align, kSlabAlignment))));
  if (memory->bytes == nullptr) return FLHAL_EXHAUSTED;
  device->used_bytes += slab->bytes;
  slab->memory = memory.release();
  return FLHAL_OK;
}

// Slot 8. No work uses the slab any more; core has waited for that.
void memory_free(flhal_p_device* device, flhal_p_memory* memory) {
  device->used_bytes -= memory->size;
  delete memory;
}

static char* pointer_to(const flhal_p_place& place) {
  return place.memory != nullptr ? place.memory->bytes.get() + place.offset : static_cast<char*>(place.host);
}

// Slot 9. Either side may be on the chip or on the host; `rows` rows of `bytes` bytes, `pitch` bytes from row to row.
// stream is null for a plugin without streams: the work is finished when we return.
// driver: one call each for host to chip, chip to host and chip to chip.
flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1* copy) {
  char* dst = pointer_to(copy->dst);
  const char* src = pointer_to(copy->src);
  for (uint64_t row = 0; row < copy->rows; ++row)
    std::memcpy(dst + row * copy->dst_pitch, src + row * copy->src_pitch, copy->bytes);
  return FLHAL_OK;
}

// Slot 10. The pattern has 1, 2, 4, 8 or 16 bytes and `bytes` is a multiple of it.
flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes) {
  char* dst = pointer_to(*place);
  if (bytes == 0) return FLHAL_OK;
  std::memcpy(dst, pattern, pattern_bytes);
  for (uint64_t done = pattern_bytes; done < bytes;) {   // doubles what is written: few calls, no loop over bytes
    uint64_t step = std::min(done, bytes - done);
    std::memcpy(dst + done, dst, step);
    done += step;
  }
  return FLHAL_OK;
}

}  // namespace chip
