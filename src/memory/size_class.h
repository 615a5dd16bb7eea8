// src/memory/size_class.h: the sizes small blocks are rounded to.
//
// Four steps a doubling from 256 bytes to 256 KiB: at most a fifth is lost, and every block keeps an alignment of 256.
// Larger blocks are whole granules of 64 KiB. Classes up to 32 KiB go through thread caches.
#pragma once

#include <array>
#include <cstdint>

namespace flhal {

inline constexpr uint64_t kBlockAlign = 256;
inline constexpr uint64_t kCachedBytesMax = 32 << 10, kSmallBytesMax = 256 << 10;
inline constexpr uint32_t kClasses = 36, kCachedClasses = 24;
inline constexpr uint8_t kNoClass = 255;

inline constexpr auto kClassBytes = [] {
  std::array<uint32_t, kClasses> sizes{};
  uint32_t n = 0;
  for (uint32_t size = 256; size <= 1024; size += 256) sizes[n++] = size;
  for (uint32_t half = 1024; half < kSmallBytesMax; half *= 2)
    for (uint32_t step = 1; step <= 4; ++step) sizes[n++] = half + half / 4 * step;
  return sizes;
}();
static_assert(kClassBytes[kCachedClasses - 1] == kCachedBytesMax && kClassBytes[kClasses - 1] == kSmallBytesMax);

// Class of a size in units of 256 bytes, up to kCachedBytesMax.
inline constexpr auto kClassOfUnits = [] {
  std::array<uint8_t, kCachedBytesMax / kBlockAlign + 1> classes{};
  uint8_t c = 0;
  for (uint32_t units = 1; units < classes.size(); ++units) {
    if (units * kBlockAlign > kClassBytes[c]) ++c;
    classes[units] = c;
  }
  return classes;
}();

inline uint32_t class_of(uint64_t bytes) {   // 1 .. kSmallBytesMax
  if (bytes <= kCachedBytesMax) return kClassOfUnits[(bytes + kBlockAlign - 1) / kBlockAlign];
  uint32_t c = kCachedClasses;
  while (kClassBytes[c] < bytes) ++c;
  return c;
}

// Bytes of the span that blocks of a class are cut from: 16 to 256, then 8 to 51, then 2 to 12 blocks.
inline uint64_t span_bytes_of(uint32_t size_class) {
  uint32_t block = kClassBytes[size_class];
  return block <= 4096 ? 64 << 10 : block <= kCachedBytesMax ? 256 << 10 : 512 << 10;
}
inline constexpr uint32_t kBlocksPerSpanMax = 256;

// How many free blocks of a class one thread may keep: about 64 KiB, at least 2, at most 32.
inline constexpr uint32_t kCachedBlocksMax = 32;
inline constexpr uint32_t cached_blocks_max(uint32_t size_class) {
  uint32_t n = (64u << 10) / kClassBytes[size_class];
  return n < 2 ? 2 : n > kCachedBlocksMax ? kCachedBlocksMax : n;
}

}  // namespace flhal
