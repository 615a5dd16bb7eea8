// src/api/copy.cc: the exports of flhal/copy.h.
#include <flhal/copy.h>

#include "api/api_call.h"
#include "core/stream.h"
#include "memory/copy_engine.h"

using namespace flhal;

extern "C" {

flhal_status flhal_copy(flhal_stream* stream, flhal_addr dst, flhal_addr src, uint64_t bytes, uint32_t flags) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_copy"));
    return copy_bytes(stream_from(stream), dst, src, bytes, flags);
  });
}

flhal_status flhal_fill(flhal_stream* stream, flhal_addr dst, uint64_t bytes, const void* pattern, uint32_t pattern_bytes) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_stream(stream, "flhal_fill"));
    return fill_bytes(stream_from(stream), dst, bytes, pattern, pattern_bytes);
  });
}

}  // extern "C"
