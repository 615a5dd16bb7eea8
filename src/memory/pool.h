// src/memory/pool.h: stream-ordered allocation on one device.
//
// Idea: slabs from the plugin are cut into blocks; a freed block goes to its stream's free list and is reused there without
// any event; it becomes free for all once the points it was used at are reached. Small sizes go through thread caches.
// Locks: the pool lock is a leaf: nothing is called while it is held, neither plugins nor Python.
#pragma once

#include <flhal/memory.h>

#include <utility>

#include "core/stream.h"
#include "memory/address_map.h"

namespace flhal {

class Pool {
 public:
  virtual ~Pool() = default;
  virtual Result<uint64_t> allocate(Stream* stream, uint64_t bytes) = 0;
  virtual void stats(flhal_memory_stats* out) = 0;
  virtual void reset_peaks() = 0;
  virtual Status trim() = 0;
  virtual Status check() = 0;                          // every invariant; FLHAL_E_INTERNAL names the first that is broken
};

Result<Pool*> make_pool(Device* device);               // called by Device::open
// Before device_close: waits are over (close_streams came first), every slab goes back to the plugin; allocations that are
// still alive become dead addresses: their free is silent, their use an error.
void close_pool(Device* device);

Result<uint64_t> pool_allocate(Stream* stream, uint64_t bytes);   // with the thread cache's fast path
Status pool_free(uint64_t address);                    // any thread; finds the pool by the address
Status pool_used_on(uint64_t address, Stream* stream);

// Caches above the pool (packed weights, plans with workspaces) that can give device memory back. Called without locks
// when memory is short, before out of memory is reported.
void add_reclaimer(void (*reclaim)(Device* device));

// A temporary in stream order: freed (in order) when it goes out of scope. For composites and workspaces.
class Temporary {
 public:
  static Result<Temporary> make(Stream* stream, uint64_t bytes);
  Temporary(Temporary&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();
  uint64_t address() const { return address_; }

 private:
  explicit Temporary(uint64_t address) : address_(address) {}
  uint64_t address_;
};

}  // namespace flhal
