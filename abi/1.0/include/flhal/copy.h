// flhal/copy.h: moving plain bytes. Strided and converting copies are the op FLHAL_OP_COPY.
#ifndef FLHAL_COPY_H
#define FLHAL_COPY_H

#include <flhal/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLHAL_COPY_MAY_RETURN_EARLY 1u   // honoured only when the host side is flhal_host_alloc memory

// Enqueues a copy of `bytes` bytes from `src` to `dst`.
//
// Each side is a device address or a host pointer (as a number); they may lie on different devices and makers. A copy
// of 0 bytes is legal and keeps its place in the order.
//
// Ownership: device memory may be freed at once, in stream order. Pageable host memory is read or written before the
//            call returns; pinned memory until the copy ends when FLHAL_COPY_MAY_RETURN_EARLY is given.
// Order:     as work of `stream`. When the other device is another one, its default stream's earlier work is waited for.
// Errors:    FLHAL_E_INVALID if a range leaves its allocation or the ranges overlap; the stream's first failure.
// Since:     1.0
FLHAL_API flhal_status flhal_copy(flhal_stream* stream, flhal_addr dst, flhal_addr src, uint64_t bytes, uint32_t flags);

// Enqueues writing `pattern` again and again. pattern_bytes: 1, 2, 4, 8 or 16; bytes is a multiple of it. Since: 1.0
FLHAL_API flhal_status flhal_fill(flhal_stream* stream, flhal_addr dst, uint64_t bytes, const void* pattern,
                                  uint32_t pattern_bytes);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_COPY_H
