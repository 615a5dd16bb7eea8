// reference_plugins/host/copy.cc: bytes from here to there, rectangles, and patterns.
//
// From kParallelFrom bytes on all threads copy: one core reaches about half of this class of machine's memory bandwidth.
#include "host_plugin.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "threads.h"

namespace flhal::host {
namespace {

constexpr uint64_t kParallelFrom = 1 << 20;
constexpr uint64_t kChunk = 256 << 10;   // a multiple of the page and of every pattern

void move_bytes(char* dst, const char* src, uint64_t bytes) {
  const bool overlap = dst < src + bytes && src < dst + bytes;
  if (bytes < kParallelFrom || overlap) {   // threads would read what another has written already
    std::memmove(dst, src, bytes);
    return;
  }
  for_ranges((bytes + kChunk - 1) / kChunk, [=](uint64_t first, uint64_t count) {
    const uint64_t from = first * kChunk, to = std::min(bytes, (first + count) * kChunk);
    std::memcpy(dst + from, src + from, to - from);
  });
}

// Writes the pattern from `dst` on. Grows a filled piece by copying it until it is a page, then lays pages.
void lay_pattern(char* dst, uint64_t bytes, const void* pattern, uint64_t width) {
  std::memcpy(dst, pattern, std::min(bytes, width));
  uint64_t have = std::min(bytes, width);
  while (have < bytes) {
    const uint64_t n = std::min({have, bytes - have, uint64_t{4096}});
    std::memcpy(dst + have, dst, n);
    have += n;
  }
}

}  // namespace

flhal_status copy(flhal_p_device* device, flhal_p_stream*, const flhal_p_copy_v1* c) {
  if (__builtin_expect(c->next != nullptr, 0)) {
    if (uint32_t needed = flhal_needed_extension(c->next)) return needs_extension(device->plugin->host, "copy", needed);
  }
  char* dst = pointer_to(c->dst);
  const char* src = pointer_to(c->src);
  if (c->bytes == 0) return FLHAL_OK;
  if (c->rows <= 1) {
    move_bytes(dst, src, c->bytes);
    return FLHAL_OK;
  }
  if (c->dst_pitch == c->bytes && c->src_pitch == c->bytes) {
    move_bytes(dst, src, c->bytes * c->rows);
    return FLHAL_OK;
  }
  auto rows = [&](uint64_t first, uint64_t count) {
    for (uint64_t r = first; r < first + count; ++r) std::memmove(dst + r * c->dst_pitch, src + r * c->src_pitch, c->bytes);
  };
  if (c->bytes * c->rows < kParallelFrom) rows(0, c->rows);
  else for_ranges(c->rows, rows);
  return FLHAL_OK;
}

flhal_status fill(flhal_p_device* device, flhal_p_stream*, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes) {
  const bool width_is_good = pattern_bytes != 0 && pattern_bytes <= 16 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!width_is_good || bytes % pattern_bytes != 0)
    return fail(device->plugin, FLHAL_E_INVALID,
                fmt::format("host: fill of {} bytes with a pattern of {} bytes; the pattern must have 1, 2, 4, 8 or 16 bytes "
                            "and the size must be a multiple of it", bytes, pattern_bytes));
  if (bytes == 0) return FLHAL_OK;
  char* dst = pointer_to(*place);
  const char* p = static_cast<const char*>(pattern);
  const bool all_bytes_equal = std::all_of(p, p + pattern_bytes, [p](char c) { return c == *p; });
  auto lay = [=](char* to, uint64_t n) {
    if (all_bytes_equal) std::memset(to, static_cast<unsigned char>(*p), n);
    else lay_pattern(to, n, p, pattern_bytes);
  };
  if (bytes < kParallelFrom) {
    lay(dst, bytes);
    return FLHAL_OK;
  }
  for_ranges((bytes + kChunk - 1) / kChunk, [=](uint64_t first, uint64_t count) {
    const uint64_t from = first * kChunk, to = std::min(bytes, (first + count) * kChunk);
    lay(dst + from, to - from);
  });
  return FLHAL_OK;
}

}  // namespace flhal::host
