// tests/fuzz/chips.h: the chips that targets run calls on: ram (host route, staged) and mock's chip_a (native and kernel).
#pragma once

#include <flhal/flhal.h>

#include "bytes.h"

namespace flhal::fuzz {

inline constexpr uint64_t kArenaBytes = 4096;

struct Chip {
  flhal_device* device = nullptr;
  flhal_stream* stream = nullptr;
  flhal_addr arena = 0;              // one allocation of kArenaBytes
};

inline constexpr uint32_t kChips = 2;

// Opened with the first call. Everything of the environment that would change what an input does is taken out.
const Chip& chip(uint32_t i);

// A copy in memory of exactly its size: AddressSanitizer then sees a read behind it.
template <typename T>
class Exact {
 public:
  explicit Exact(size_t n) : data_(static_cast<T*>(std::malloc(n * sizeof(T)))) {
    if (n != 0) std::memset(static_cast<void*>(data_), 0, n * sizeof(T));
  }
  Exact(Exact&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  ~Exact() { std::free(data_); }
  T* data() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace flhal::fuzz
