// src/memory/pinned.h: host memory that devices copy from and to without staging.
//
// Idea: the same pool as for device memory, over slabs of host memory: from the plugin where it can pin, else plain memory
// that we know about. Addresses are host pointers, looked up in a table of their own, so interior pointers are recognised.
// Freed blocks wait for the streams they were used on, in the order of those streams.
#pragma once

#include <utility>

#include "core/stream.h"

namespace flhal {

// device nullptr: for all devices, as far as they can. bytes 0 gives a pointer that may be freed. Alignment 256.
Result<void*> pinned_alloc(Device* device, uint64_t bytes);
Status pinned_free(const void* pointer);           // any thread; in order; nullptr is legal
bool is_pinned(const void* pointer);               // any byte of a live block
bool is_pinned_range(const void* pointer, uint64_t bytes);
Status pinned_used_on(const void* pointer, Stream* stream);
// Before device_close: see close_pool.
void close_pinned(Device* device);
// The pool behind pinned_alloc(device), for figures and checks; nullptr when there is none yet.
class Pool;
Pool* pinned_pool(Device* device);

// A piece of pinned memory for one transfer; freed in order of `stream` when it goes out of scope.
class Staging {
 public:
  static Result<Staging> make(Stream* stream, uint64_t bytes);
  Staging(Staging&& other) noexcept : stream_(other.stream_), bytes_(std::exchange(other.bytes_, nullptr)) {}
  Staging& operator=(Staging&&) = delete;
  ~Staging();
  char* bytes() const { return bytes_; }
  char* release() { return std::exchange(bytes_, nullptr); }

 private:
  Staging(Stream* stream, char* bytes) : stream_(stream), bytes_(bytes) {}
  Stream* stream_;
  char* bytes_;
};

}  // namespace flhal
