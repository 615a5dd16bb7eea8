// src/memory/bounce.h: rectangles of bytes, cut into pieces, and the way of the pieces between two chips that see neither the
// other's memory nor the host's.
//
// Idea: pieces go down into one of two buffers and up from it. While piece n goes up, piece n+1 comes down into the other one;
// the host waits only for what the next submission needs: that a piece has come down before it goes up, and that a buffer's last
// piece has gone up before the next one comes down into it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/status.h"

namespace flhal {

constexpr uint64_t kChunkBytes = 1 << 20;        // of staging from pageable memory; larger gains nothing on the plugins measured

// Of the pieces between two chips: enough of them to overlap, and large, since the host waits for each (64 MiB between two PoCL
// devices, over both halves one after the other: 0.95 to 1.07 with 1 MiB, 0.78 with 4 MiB).
constexpr uint64_t bounce_bytes(uint64_t all) { return std::clamp<uint64_t>(all / 8 / 65536 * 65536, kChunkBytes, 4 * kChunkBytes); }

struct Rect {
  uint64_t bytes, rows, dst_pitch, src_pitch;
  uint64_t dst_span() const { return rows == 0 || bytes == 0 ? 0 : (rows - 1) * dst_pitch + bytes; }
  uint64_t src_span() const { return rows == 0 || bytes == 0 ? 0 : (rows - 1) * src_pitch + bytes; }
};

// Calls each(first row, offset in the row, rectangle) for pieces of at most `most` bytes.
template <typename Each>
Status in_chunks(const Rect& rect, uint64_t most, Each&& each) {
  if (rect.bytes > most || rect.rows == 1) {
    for (uint64_t row = 0; row < rect.rows; ++row)
      for (uint64_t done = 0; done < rect.bytes; done += most)
        FLHAL_TRY(each(row, done, Rect{std::min(most, rect.bytes - done), 1, rect.dst_pitch, rect.src_pitch}));
    return FLHAL_OK;
  }
  uint64_t rows = std::max<uint64_t>(1, most / rect.bytes);
  for (uint64_t row = 0; row < rect.rows; row += rows)
    FLHAL_TRY(each(row, uint64_t(0), Rect{rect.bytes, std::min(rows, rect.rows - row), rect.dst_pitch, rect.src_pitch}));
  return FLHAL_OK;
}

// `Ways` submits and waits:
//   down(buffer, row, offset, piece)   submits a piece into a buffer       up(...)   and from it
//   wait_down()                        until all that was submitted has come down
//   wait_free(buffer)                  until what was submitted from this buffer has gone up
// What it submitted last may still run when this returns, also with a failure.
template <typename Ways>
Status bounce(const Rect& rect, Ways& ways) {
  uint64_t n = 0;
  return in_chunks(rect, bounce_bytes(rect.bytes * rect.rows), [&](uint64_t row, uint64_t offset, const Rect& piece) -> Status {
    const uint64_t buffer = n++ % 2;
    FLHAL_TRY(ways.wait_free(buffer));
    FLHAL_TRY(ways.down(buffer, row, offset, piece));
    FLHAL_TRY(ways.wait_down());
    return ways.up(buffer, row, offset, piece);
  });
}

}  // namespace flhal
