// src/memory/thread_cache.h: free blocks that one thread keeps for one stream, and the fast path of alloc and free.
//
// Idea: no lock and no atomic read-modify-write. A thread has kSlots pointers to caches, chosen by stream; an empty slot
// points to a cache that never matches, so there is no null check. Everything that is not the plain case goes to the pool.
// Cost (callgrind, flhal_alloc + flhal_free): see bench/pool_bench.cc.
// Threads: a cache belongs to its thread. Others read its figures and set its `full` marks (relaxed), which makes the
// owner's next free give everything back; nothing else of it is touched by others.
// Statistics: each cache counts its own deltas; the pool adds them up. Peaks are exact while one thread allocates, and
// otherwise too high by at most what the threads keep between two visits to the pool.
#pragma once

#include "core/fork_guard.h"
#include "memory/arena.h"

namespace flhal {

struct CachedBlock {
  uint64_t address;
  std::atomic<uint64_t>* requested;      // the block's cell in its span
};

struct CacheBin {
  uint32_t count = 0;
  std::atomic<uint32_t> full{0};         // the count at which a free goes to the pool; 0 = asked to give all back
  CachedBlock blocks[32];
};

// Changes since the last visit to the pool. Written by the owner, read by stats().
struct CacheFigures {
  std::atomic<int64_t> requested{0}, requested_peak{0}, allocated{0}, allocated_peak{0};
  std::atomic<int64_t> n_allocations{0}, n_frees{0};
};

struct ThreadCache {
  Arena* arena = nullptr;
  CacheFigures figures;
  CacheBin bins[kCachedClasses];
};

inline constexpr uint32_t kCacheSlots = 8;
extern __thread ThreadCache* t_caches[kCacheSlots] __attribute__((tls_model("initial-exec"))) FLHAL_HIDDEN;

inline void add_relaxed(std::atomic<int64_t>& figure, int64_t by) {
  figure.store(figure.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
inline void add_with_peak(std::atomic<int64_t>& figure, std::atomic<int64_t>& peak, int64_t by) {
  int64_t now = figure.load(std::memory_order_relaxed) + by;
  figure.store(now, std::memory_order_relaxed);
  if (__builtin_expect(now > peak.load(std::memory_order_relaxed), 0)) peak.store(now, std::memory_order_relaxed);
}

// The address of a cached block; 0 when the pool must be asked.
inline uint64_t take_cached(Stream* stream, uint64_t bytes) {
  if (__builtin_expect(bytes - 1 >= kCachedBytesMax, 0)) return 0;
  uint32_t size_class = kClassOfUnits[(bytes + kBlockAlign - 1) / kBlockAlign];
  ThreadCache* cache = t_caches[stream->cache_slot.load(std::memory_order_relaxed) % kCacheSlots];
  if (__builtin_expect(cache->arena != stream->arena.load(std::memory_order_acquire), 0)) return 0;
  CacheBin& bin = cache->bins[size_class];
  if (__builtin_expect(bin.count == 0, 0)) return 0;
  CachedBlock block = bin.blocks[--bin.count];
  block.requested->store(bytes, std::memory_order_relaxed);
  CacheFigures& figures = cache->figures;
  add_relaxed(figures.n_allocations, 1);
  add_with_peak(figures.requested, figures.requested_peak, int64_t(bytes));
  add_with_peak(figures.allocated, figures.allocated_peak, kClassBytes[size_class]);
  return block.address;
}

// Gives a live small block of this thread's streams back; false when the pool must be asked.
inline bool give_cached(uint64_t address) {
  Span* span = span_at(g_device_map, address);
  if (__builtin_expect(span == nullptr || span->size_class >= kCachedClasses, 0)) return false;
  ThreadCache* cache = t_caches[span->cache_slot % kCacheSlots];
  uint64_t offset = address - span->base;
  uint64_t block = offset * span->magic >> kMagicShift;
  std::atomic<uint64_t>* requested = span->requested + block;
  uint64_t bytes = requested->load(std::memory_order_relaxed);
  CacheBin& bin = cache->bins[span->size_class];
  if (__builtin_expect(cache->arena != span->arena || block * span->block_bytes != offset || bytes == 0 ||
                           span->marked.load(std::memory_order_relaxed) != 0 ||
                           bin.count >= bin.full.load(std::memory_order_relaxed), 0)) {
    return false;
  }
  requested->store(0, std::memory_order_relaxed);
  bin.blocks[bin.count++] = {address, requested};
  CacheFigures& figures = cache->figures;
  add_relaxed(figures.n_frees, 1);
  add_relaxed(figures.requested, -int64_t(bytes));
  add_relaxed(figures.allocated, -int64_t(span->block_bytes));
  return true;
}

// Slow parts, called by the pool.
ThreadCache* install_cache(Arena* arena);      // this thread's cache of the arena; nullptr while the thread ends
ThreadCache* present_cache(Arena* arena);      // nullptr when there is none

}  // namespace flhal
