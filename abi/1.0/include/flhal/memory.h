// flhal/memory.h: device memory in stream order, pinned host memory, and the one door through which the host sees
// device bytes.
#ifndef FLHAL_MEMORY_H
#define FLHAL_MEMORY_H

#include <flhal/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

// An address is a number in one 64-bit space that all devices and the host share: no two allocations overlap, and
// address arithmetic inside an allocation is legal. It need not be readable by the host.
typedef uint64_t flhal_addr;

// Allocates device memory, usable at once by work on `stream` (other streams must wait for it by an event).
//
// bytes: 0 is legal and gives address 0. Alignment is at least 256.
// Ownership: the caller's until flhal_free.
// Errors: FLHAL_E_OUT_OF_MEMORY after finishing pending frees, dropping caches, trimming and one retry; the text has
//         requested, allocated, reserved, largest free block, limit and a remedy.
// Since:  1.0
FLHAL_API flhal_status flhal_alloc(flhal_stream* stream, uint64_t bytes, flhal_addr* out_address);

// Gives memory back. Legal while work that uses it is queued on the stream it came from or on a stream that
// flhal_memory_used_on named: the block is reused only in order. Address 0 is legal.
// Threads: any; never blocks, never throws; does nothing in a forked child. Since: 1.0
FLHAL_API flhal_status flhal_free(flhal_addr address);

// Tells that work queued so far on `stream` also uses the allocation that holds `address`. Since: 1.0
FLHAL_API flhal_status flhal_memory_used_on(flhal_addr address, flhal_stream* stream);

// Which allocation an address lies in. `address` may point into it. Costs under 25 instructions inside core.
typedef struct flhal_memory_place {
  uint32_t struct_size, device;   // device index
  flhal_addr base;                // first byte of the allocation
  uint64_t bytes;                 // as requested
  void* host;                     // host pointer to `address` when device memory is host-visible as it is; else NULL
} flhal_memory_place;
// Errors: FLHAL_E_NOT_FOUND when no device owns the address (a host pointer, or freed). Since: 1.0
FLHAL_API flhal_status flhal_memory_lookup(flhal_addr address, flhal_memory_place* out_place);

// Host memory that the device copies from and to without staging. `device` may be NULL: pinned for all of them as
// far as they can. Since: 1.0
FLHAL_API flhal_status flhal_host_alloc(flhal_device* device, uint64_t bytes, void** out_pointer);
FLHAL_API flhal_status flhal_host_free(void* pointer);
// FLHAL_OK when `pointer` lies in memory of flhal_host_alloc (interior pointers too); FLHAL_DECLINED otherwise.
FLHAL_API flhal_status flhal_host_is_pinned(const void* pointer);
// Tells that work queued so far on `stream` also uses the pinned block that holds `pointer`. Since: 1.0
FLHAL_API flhal_status flhal_host_used_on(const void* pointer, flhal_stream* stream);

#define FLHAL_READ    1u
#define FLHAL_WRITE   2u
#define FLHAL_DISCARD 4u   // with FLHAL_WRITE: the old bytes are not needed

// Makes `bytes` bytes of device memory usable by the host until flhal_host_end. Waits for `stream`. Aliases the memory
// when the chip allows it, stages it when not.
//
// out_host: the bytes; as aligned as the address, up to 64. out_ticket: for flhal_host_end.
// Errors: FLHAL_E_INVALID when the range leaves its allocation; the stream's first failure. Since: 1.0
FLHAL_API flhal_status flhal_host_begin(flhal_stream* stream, flhal_addr address, uint64_t bytes, uint32_t access,
                                        void** out_host, uint64_t* out_ticket);
// Ends it; with FLHAL_WRITE the bytes are on the device for later work of `stream`. Since: 1.0
FLHAL_API flhal_status flhal_host_end(flhal_stream* stream, uint64_t ticket);

// Figures of one device's memory, in bytes unless named otherwise. Fill struct_size.
typedef struct flhal_memory_stats {
  uint32_t struct_size, reserved0;
  uint64_t requested, requested_peak;     // sum of bytes asked for by live allocations
  uint64_t allocated, allocated_peak;     // the same, rounded up to blocks
  uint64_t reserved, reserved_peak;       // slabs held from the plugin
  uint64_t pending_free;                  // freed, still in use by queued work
  uint64_t largest_free_block, limit, device_free, device_total;
  uint64_t n_allocations, n_frees, n_live, n_slabs, n_retries, n_out_of_memory;
} flhal_memory_stats;
FLHAL_API flhal_status flhal_memory_get_stats(flhal_device* device, flhal_memory_stats* out_stats);
FLHAL_API flhal_status flhal_memory_reset_peaks(flhal_device* device);
// Returns every slab without a live block to the plugin. Since: 1.0
FLHAL_API flhal_status flhal_memory_trim(flhal_device* device);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_MEMORY_H
