// tests/fuzz/bytes.h: an input of a fuzzer, read as numbers and texts. Where it ends, everything is zero or empty.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace flhal::fuzz {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  template <typename T>
  T number() {
    T value{};
    const size_t n = sizeof value < left() ? sizeof value : left();
    if (n != 0) std::memcpy(&value, at_, n);
    at_ += n;
    return value;
  }
  uint8_t byte() { return number<uint8_t>(); }
  // 0 .. n-1, from one byte.
  uint32_t below(uint32_t n) { return byte() % n; }
  std::string text(size_t n) {
    if (n > left()) n = left();
    std::string taken(reinterpret_cast<const char*>(at_), n);
    at_ += n;
    return taken;
  }
  std::string text() { return text(byte()); }          // its length stands before it
  std::string rest() { return text(left()); }
  // Up to the byte `end`, which is taken and left out.
  std::string until(char end) {
    std::string taken;
    while (!empty()) {
      const char c = static_cast<char>(byte());
      if (c == end) break;
      taken += c;
    }
    return taken;
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t* at_;
  const uint8_t* end_;
};

// What must hold whatever the input is. Not assert(): these also count in builds with NDEBUG.
#define FLHAL_MUST(condition)                                                                 \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);     \
      std::abort();                                                                           \
    }                                                                                         \
  } while (0)

}  // namespace flhal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
