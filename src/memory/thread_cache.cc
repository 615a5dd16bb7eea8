// src/memory/thread_cache.cc: making, finding and ending a thread's caches.
//
// Threads: all state here is the thread's own. At thread end the blocks go back to their pools; frees that come even later
// (destructors of other thread-local objects) find no cache and take the pool's way.
#include "memory/thread_cache.h"

#include <pthread.h>

#include <memory>

#include "core/fork_guard.h"

#include "memory/block_pool.h"

namespace flhal {

namespace {

Arena g_no_arena;                        // never equal to a stream's arena, also not to none
ThreadCache g_empty_cache{&g_no_arena, {}, {}, {}};

struct CachesAtThreadEnd {
  bool ended = false;
  ~CachesAtThreadEnd();
};
thread_local CachesAtThreadEnd t_end;

// In a forked child nothing may be taken from or given to a pool: with empty slots every call takes the slow way, which looks
// at forked(). The fast path needs no look of its own then. Only the forking thread exists in the child.
void empty_slots() {
  for (ThreadCache*& cache : t_caches) cache = &g_empty_cache;
}

void remove_slot(uint32_t slot) {
  ThreadCache* cache = t_caches[slot];
  if (cache == &g_empty_cache) return;
  t_caches[slot] = &g_empty_cache;
  cache->arena->pool->remove_cache(cache);
  delete cache;
}

CachesAtThreadEnd::~CachesAtThreadEnd() {
  ended = true;
  if (forked()) return;                  // another thread may have held the pool's lock at the fork
  for (uint32_t slot = 0; slot < kCacheSlots; ++slot) remove_slot(slot);
}

}  // namespace

__thread ThreadCache* t_caches[kCacheSlots] __attribute__((tls_model("initial-exec"))) = {
    &g_empty_cache, &g_empty_cache, &g_empty_cache, &g_empty_cache,
    &g_empty_cache, &g_empty_cache, &g_empty_cache, &g_empty_cache};

ThreadCache* present_cache(Arena* arena) {
  ThreadCache* cache = t_caches[arena->cache_slot];
  return cache->arena == arena ? cache : nullptr;
}

ThreadCache* install_cache(Arena* arena) {
  if (ThreadCache* cache = present_cache(arena)) return cache;
  if (t_end.ended) return nullptr;
  static const int registered = pthread_atfork(nullptr, nullptr, empty_slots);
  (void)registered;
  uint32_t slot = arena->cache_slot;
  remove_slot(slot);                     // a thread that uses many streams: the older one makes way
  auto* cache = new ThreadCache();
  cache->arena = arena;
  for (uint32_t c = 0; c < kCachedClasses; ++c) {
    cache->bins[c].top.store(cache->floor(c), std::memory_order_relaxed);
    cache->bins[c].limit.store(cache->floor(c) + cached_blocks_max(c), std::memory_order_relaxed);
  }
  arena->pool->add_cache(cache);
  t_caches[slot] = cache;
  return cache;
}

void BlockPool::add_cache(ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  caches_.push_back(cache);
}

void BlockPool::remove_cache(ThreadCache* cache) {
  std::lock_guard lock(mutex_);
  flush_cache_locked(cache, true);
  std::erase(caches_, cache);
}

}  // namespace flhal
