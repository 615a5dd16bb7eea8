// src/memory/copy_engine.h: plain bytes between host, chips and makers.
//
// Each side is a device address or a host pointer; what is found in the address map decides. Rules of order and
// ownership: flhal/copy.h.
#pragma once

#include <flhal/copy.h>

#include "core/stream.h"

namespace flhal {

Status copy_bytes(Stream* stream, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t flags);
// A rectangle: `rows` rows of `bytes`, pitches in bytes, at least `bytes` when there is more than one row.
Status copy_rows(Stream* stream, uint64_t dst, uint64_t src, uint64_t bytes, uint64_t rows, uint64_t dst_pitch,
                 uint64_t src_pitch, uint32_t flags);
Status fill_bytes(Stream* stream, uint64_t dst, uint64_t bytes, const void* pattern, uint32_t pattern_bytes);

}  // namespace flhal
