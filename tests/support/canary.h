// tests/support/canary.h: device memory with known bytes before, after and between, to find every byte written by mistake.
#pragma once

#include <flhal/copy.h>

#include <cstdint>
#include <string>
#include <vector>

namespace flhal::test {

struct ByteRange {
  uint64_t begin, end;     // relative to GuardedBuffer::address()
};

// An allocation of guard + bytes + guard, filled with bytes that depend on their place (a shifted copy is seen, too).
// Throws std::runtime_error with flhal's text when a call fails.
class GuardedBuffer {
 public:
  GuardedBuffer(flhal_stream* stream, uint64_t bytes, uint64_t guard_bytes = 256);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;

  flhal_addr address() const { return base_ + guard_bytes_; }
  uint64_t bytes() const { return bytes_; }
  void upload(const void* host, uint64_t offset, uint64_t bytes);      // also becomes what check() expects
  std::vector<uint8_t> download() const;                               // without the guards

  // "" when every byte outside of `written` is as it was; else a sentence with the first wrong place and values.
  std::string check(const std::vector<ByteRange>& written) const;

 private:
  std::vector<uint8_t> read_all() const;
  flhal_stream* stream_;
  uint64_t bytes_, guard_bytes_;
  flhal_addr base_ = 0;
  std::vector<uint8_t> expected_;      // with guards
};

// The bytes that a strided view touches: sizes and strides in elements, offset and element in bytes.
std::vector<ByteRange> ranges_of_view(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, uint64_t offset_bytes,
                                      uint64_t element_bytes);

// This thread's last failure as text, e.g. for INFO().
std::string last_error();

}  // namespace flhal::test
