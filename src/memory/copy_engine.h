// src/memory/copy_engine.h: plain bytes between host, chips and makers.
#pragma once

#include "core/stream.h"

namespace flhal {

Status copy_bytes(Stream* stream, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t flags);
Status fill_bytes(Stream* stream, uint64_t dst, uint64_t bytes, const void* pattern, uint32_t pattern_bytes);

}  // namespace flhal
