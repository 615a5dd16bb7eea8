// copy.cc: copies and fills, on the stream's worker.
#include <cstring>

#include "mock.h"

namespace mock {
namespace {

void collect(std::vector<flhal_p_memory*>& uses, const flhal_p_place& place) {
  if (place.memory != nullptr) uses.push_back(place.memory);
}

bool leaves(const flhal_p_place& place, uint64_t bytes) {
  return place.memory != nullptr && (place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset);
}

bool on_chip(const flhal_p_place& place) { return place.memory != nullptr && place.memory->outside != nullptr; }

}  // namespace

namespace slots {

flhal_status copy(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_copy_v1* c) {
  if (flhal_status s = slot_begin(Slot::copy, device->chip); s != FLHAL_OK) return s;
  if (flhal_status s = extensions(c->next, "copy"); s != FLHAL_OK) return s;
  uint64_t rows = c->rows == 0 ? 1 : c->rows;
  uint64_t span_dst = (rows - 1) * c->dst_pitch + c->bytes, span_src = (rows - 1) * c->src_pitch + c->bytes;
  if (leaves(c->dst, span_dst) || leaves(c->src, span_src)) {
    misuse(device->chip, "copy leaves its slab");
    return fail(FLHAL_E_INVALID, "mock: copy: the range leaves its slab");
  }
  std::vector<flhal_p_memory*> uses;
  collect(uses, c->dst);
  collect(uses, c->src);
  // Everything is taken by value: the structure is only valid during this call.
  char* dst = inside_of(c->dst);
  const char* src = inside_of(c->src);
  uint64_t bytes = c->bytes, dst_pitch = c->dst_pitch, src_pitch = c->src_pitch;
  Counts& n = device->counts();
  std::atomic<uint64_t>& moved = !on_chip(c->dst) ? n.bytes_to_host : !on_chip(c->src) ? n.bytes_to_device : n.bytes_on_device;
  flhal_status answer = submit(device, stream, Slot::copy, std::move(uses), [=, &moved]() -> Outcome {
    for (uint64_t row = 0; row < rows; ++row) memmove(dst + row * dst_pitch, src + row * src_pitch, bytes);
    moved.fetch_add(bytes * rows, std::memory_order_relaxed);
    return {};
  });
  if (answer == FLHAL_OK) n.copies.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

flhal_status fill(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes) {
  if (flhal_status s = slot_begin(Slot::fill, device->chip); s != FLHAL_OK) return s;
  bool size_is_legal = pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8 || pattern_bytes == 16;
  if (!size_is_legal || bytes % pattern_bytes != 0 || leaves(*place, bytes)) {
    misuse(device->chip, "fill with an illegal pattern or range");
    return fail(FLHAL_E_INVALID, "mock: fill: the pattern has 1, 2, 4, 8 or 16 bytes, divides the range, and the range lies in its slab");
  }
  std::array<char, 16> value{};
  memcpy(value.data(), pattern, pattern_bytes);
  std::vector<flhal_p_memory*> uses;
  collect(uses, *place);
  char* dst = inside_of(*place);
  Counts& n = device->counts();
  flhal_status answer = submit(device, stream, Slot::fill, std::move(uses), [=, &n]() -> Outcome {
    for (uint64_t i = 0; i < bytes; i += pattern_bytes) memcpy(dst + i, value.data(), pattern_bytes);
    n.bytes_filled.fetch_add(bytes, std::memory_order_relaxed);
    return {};
  });
  if (answer == FLHAL_OK) n.fills.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

}  // namespace slots
}  // namespace mock
