// src/memory/thread_cache.h: free blocks that one thread keeps for one stream, and the fast path of alloc and free.
//
// Idea: no lock and no atomic read-modify-write. A thread has kCacheSlots pointers to caches, chosen by stream; an empty slot
// points to a cache that never matches, and below each bin's blocks lies one with address 0, so neither needs a check of its
// own. Whatever is not the plain case (another thread's stream, a block that is also used elsewhere, a released stream, a
// forked child) fails the one comparison of arenas and goes to the pool.
// Cost (callgrind, flhal_alloc + flhal_free): see bench/pool_bench.cc.
// Threads: a cache belongs to its thread. Others read its figures and lower its bins' limits (relaxed), which makes the
// owner's next free give everything back; nothing else of it is touched by others.
// Statistics: a cache counts allocations and bytes asked for; the rest follows from how full its bins are. The peak of
// bytes asked for is exact while one thread allocates, and otherwise too high by at most what the threads keep between two
// visits to the pool.
#pragma once

#include "memory/arena.h"

namespace flhal {

struct CachedBlock {
  uint64_t address;
  std::atomic<uint64_t>* requested;      // the block's cell in its span
};

struct CacheBin {
  std::atomic<CachedBlock*> top{nullptr};     // the first unused place
  std::atomic<CachedBlock*> limit{nullptr};   // a free goes to the pool from here; the floor: asked to give all back
};

// Changes since the last visit to the pool. Written by the owner, read by stats().
struct CacheFigures {
  std::atomic<int64_t> n_allocations{0}, requested{0}, requested_peak{0};
};

struct ThreadCache {
  Arena* arena = nullptr;
  CacheFigures figures;
  CacheBin bins[kCachedClasses];
  CachedBlock blocks[kCachedClasses][kCachedBlocksMax + 1] = {};   // [0] stays empty

  CachedBlock* floor(uint32_t size_class) { return &blocks[size_class][1]; }
  uint32_t count(uint32_t size_class) {
    return uint32_t(bins[size_class].top.load(std::memory_order_relaxed) - floor(size_class));
  }
};

extern __thread ThreadCache* t_caches[kCacheSlots] __attribute__((tls_model("initial-exec"))) FLHAL_HIDDEN;

inline void add_relaxed(std::atomic<int64_t>& figure, int64_t by) {
  figure.store(figure.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// The address of a cached block; 0 when the pool must be asked.
[[gnu::always_inline]] inline uint64_t take_cached(Stream* stream, uint64_t bytes) {
  if (__builtin_expect(bytes - 1 >= kCachedBytesMax, 0)) return 0;
  ThreadCache* cache = t_caches[stream->cache_slot.load(std::memory_order_relaxed)];
  if (__builtin_expect(cache->arena != stream->arena.load(std::memory_order_acquire), 0)) return 0;
  CacheBin& bin = cache->bins[kClassOfUnits[(bytes + kBlockAlign - 1) / kBlockAlign]];
  CachedBlock* top = bin.top.load(std::memory_order_relaxed) - 1;
  uint64_t address = top->address;
  if (__builtin_expect(address == 0, 0)) return 0;
  bin.top.store(top, std::memory_order_relaxed);
  top->requested->store(bytes, std::memory_order_relaxed);
  CacheFigures& figures = cache->figures;
  add_relaxed(figures.n_allocations, 1);
  int64_t requested = figures.requested.load(std::memory_order_relaxed) + int64_t(bytes);
  figures.requested.store(requested, std::memory_order_relaxed);
  if (__builtin_expect(requested > figures.requested_peak.load(std::memory_order_relaxed), 0))
    figures.requested_peak.store(requested, std::memory_order_relaxed);
  return address;
}

// Gives a live small block of this thread's streams back; false when the pool must be asked.
[[gnu::always_inline]] inline bool give_cached(uint64_t address) {
  Span* span = span_at(g_device_map, address);
  if (__builtin_expect(span == nullptr, 0)) return false;
  ThreadCache* cache = t_caches[span->cache_slot];
  if (__builtin_expect(cache->arena != span->cached_for.load(std::memory_order_relaxed), 0)) return false;
  uint64_t offset = address - span->base;
  uint64_t block = offset * span->magic >> kMagicShift;
  std::atomic<uint64_t>* requested = span->requested + block;
  uint64_t bytes = requested->load(std::memory_order_relaxed);
  CacheBin& bin = cache->bins[span->size_class];
  CachedBlock* top = bin.top.load(std::memory_order_relaxed);
  if (__builtin_expect(bytes == 0 || block * span->block_bytes != offset || top >= bin.limit.load(std::memory_order_relaxed), 0))
    return false;
  requested->store(0, std::memory_order_relaxed);
  *top = {address, requested};
  bin.top.store(top + 1, std::memory_order_relaxed);
  add_relaxed(cache->figures.requested, -int64_t(bytes));
  return true;
}

// Slow parts, called by the pool.
ThreadCache* install_cache(Arena* arena);      // this thread's cache of the arena; nullptr while the thread ends
ThreadCache* present_cache(Arena* arena);      // nullptr when there is none

}  // namespace flhal
