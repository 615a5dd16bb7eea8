// tests/support/canary.cc
#include "support/canary.h"

#include <fmt/core.h>

#include <cstring>
#include <stdexcept>

namespace flhal::test {
namespace {

uint8_t canary_at(uint64_t i) { return static_cast<uint8_t>(0xA5u ^ (i * 37u) ^ (i >> 8)); }

void must(flhal_status status) {
  if (status != FLHAL_OK) throw std::runtime_error(fmt::format("{} ({})", last_error(), status));
}

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }

}  // namespace

std::string last_error() {
  char text[4096] = "";
  flhal_last_error(text, sizeof text, nullptr);
  return text;
}

GuardedBuffer::GuardedBuffer(flhal_stream* stream, uint64_t bytes, uint64_t guard_bytes)
    : stream_(stream), bytes_(bytes), guard_bytes_(guard_bytes), expected_(bytes + 2 * guard_bytes) {
  for (uint64_t i = 0; i < expected_.size(); ++i) expected_[i] = canary_at(i);
  must(flhal_alloc(stream_, expected_.size(), &base_));
  must(flhal_copy(stream_, base_, number(expected_.data()), expected_.size(), 0));
}

GuardedBuffer::~GuardedBuffer() { flhal_free(base_); }

void GuardedBuffer::upload(const void* host, uint64_t offset, uint64_t bytes) {
  memcpy(expected_.data() + guard_bytes_ + offset, host, bytes);
  must(flhal_copy(stream_, address() + offset, number(host), bytes, 0));
}

std::vector<uint8_t> GuardedBuffer::read_all() const {
  std::vector<uint8_t> now(expected_.size());
  must(flhal_copy(stream_, number(now.data()), base_, now.size(), 0));
  must(flhal_stream_synchronize(stream_));
  return now;
}

std::vector<uint8_t> GuardedBuffer::download() const {
  std::vector<uint8_t> all = read_all();
  return {all.begin() + static_cast<ptrdiff_t>(guard_bytes_), all.end() - static_cast<ptrdiff_t>(guard_bytes_)};
}

std::string GuardedBuffer::check(const std::vector<ByteRange>& written) const {
  std::vector<uint8_t> now = read_all();
  std::vector<bool> may_differ(now.size());
  for (const ByteRange& r : written)
    for (uint64_t i = r.begin; i < r.end; ++i) may_differ[guard_bytes_ + i] = true;
  for (uint64_t i = 0; i < now.size(); ++i) {
    if (may_differ[i] || now[i] == expected_[i]) continue;
    return fmt::format("byte {} of a buffer of {} bytes is 0x{:02x} and was 0x{:02x}: it was written by mistake",
                       static_cast<int64_t>(i) - static_cast<int64_t>(guard_bytes_), bytes_, now[i], expected_[i]);
  }
  return {};
}

std::vector<ByteRange> ranges_of_view(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, uint64_t offset_bytes,
                                      uint64_t element_bytes) {
  std::vector<ByteRange> ranges;
  std::vector<int64_t> at(sizes.size(), 0);
  for (int64_t n : sizes)
    if (n == 0) return ranges;
  while (true) {
    int64_t element = 0;
    for (size_t d = 0; d < sizes.size(); ++d) element += at[d] * strides[d];
    uint64_t begin = offset_bytes + static_cast<uint64_t>(element) * element_bytes;
    ranges.push_back({begin, begin + element_bytes});
    size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return ranges;
  }
}

}  // namespace flhal::test
