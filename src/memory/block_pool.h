// src/memory/block_pool.h: the one implementation of Pool, for device memory and for pinned host memory.
//
// Parts: pool.cc (allocate, free, used_on), pool_spans.cc (cutting and joining under the lock), pool_growth.cc (slabs from
// the plugin, the out-of-memory ladder, trim), pool_stats.cc (figures, check), thread_cache.cc.
// Invariants: see BlockPool::check().
// Locks: grow_mutex_ (held during memory_alloc, so that threads do not all grow at once), then mutex_ (leaf).
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory/pool.h"
#include "memory/thread_cache.h"

namespace flhal {

struct BlockTable {                      // of a small span
  std::atomic<uint64_t> requested[kBlocksPerSpanMax];
  uint16_t free[kBlocksPerSpanMax];      // block numbers, a stack
};

class BlockPool final : public Pool {
 public:
  // device nullptr: plain host memory (kind FLHAL_MEM_PINNED only).
  BlockPool(Device* device, uint32_t kind);

  Result<uint64_t> allocate(Stream* stream, uint64_t bytes) override;   // stream nullptr: pinned memory
  void stats(flhal_memory_stats* out) override;
  void reset_peaks() override;
  Status trim() override;
  Status check() override;

  Status free_slowly(uint64_t address, Span* span);
  Status used_on(uint64_t address, Span* span, Stream* stream);
  void close();                                  // see close_pool and close_pinned

  void add_cache(ThreadCache* cache);
  void remove_cache(ThreadCache* cache);         // by its owner; takes all of its blocks and figures

 private:
  struct Request {
    uint64_t bytes;
    uint32_t size_class;                         // kNoClass: whole granules
    uint64_t granules;
  };
  enum class Grown { kYes, kAtLimit, kExhausted, kFailed };

  // pool.cc
  Arena* arena_for(Stream* stream);
  uint64_t attempt(Arena* arena, const Request& request);        // takes the lock; 0 = nothing fits
  void free_block_locked(Span* span, uint64_t address);
  void count_locked(int64_t requested);          // an allocation (positive) or a free of that many bytes, and the peaks
  void cached_locked(int64_t* bytes, int64_t* blocks) const;   // what all threads keep
  int64_t allocated_locked() const;
  static void release_pending(void* context);

  // pool_spans.cc; mutex_ is held
  uint64_t take_big_locked(Arena* arena, const Request& request);
  bool take_small_locked(Arena* arena, uint32_t size_class, CachedBlock* out);
  void put_small_locked(Span* span, uint32_t block);
  Span* take_span_locked(Arena* arena, uint64_t granules);
  void free_span_locked(Span* span);
  void list_free_locked(Span* span, Arena* owner, uint64_t sequence);
  Span* join_locked(Span* span, FreeIndex* index, uint64_t* sequence);
  void dissolve_locked(Span* span);
  void dissolve_empty_locked();
  void collect_locked();                         // spans whose stream has reached them become free for all
  void absorb_locked(Arena* arena);              // joins what is free for all to neighbours of this stream
  Span* new_span_locked();
  void recycle_span_locked(Span* span);
  void flush_cache_locked(ThreadCache* cache, bool everything = false);
  void take_figures_locked(ThreadCache* cache);  // its owner calls; nullptr is legal

  // pool_growth.cc
  Result<uint64_t> climb_ladder(Arena* arena, const Request& request);
  Grown grow(Arena* arena, const Request& request, uint64_t* out_address);
  Result<Slab*> slab_from_plugin(uint64_t bytes, bool* exhausted);
  void ask_streams();                            // progress of all streams, and the retire list
  void finish_pending();                         // waits
  void drop_caches();
  uint64_t release_slabs();                      // fully free ones; gives bytes returned
  void give_to_plugin(Slab* slab);
  uint64_t limit();
  Status out_of_memory(const Request& request);

  // pool_stats.cc
  uint64_t largest_free_locked() const;

  Device* const device_;
  const uint32_t kind_;
  bool plugin_pins_ = true;                      // pinned: memory_alloc of that kind has not been refused yet

  std::mutex grow_mutex_;
  std::mutex mutex_;
  Arena neutral_;                                // free for all
  std::vector<Arena*> arenas_;
  std::vector<Slab*> slabs_;
  std::vector<ThreadCache*> caches_;
  std::unordered_map<uint64_t, std::vector<Stream*>> used_on_;   // live blocks by address
  std::vector<Stream*> foreign_;                 // streams of other devices that blocks were used on
  std::deque<Span> spans_;                       // never shrinks: stale lookups stay harmless
  std::vector<Span*> unused_spans_;
  std::deque<BlockTable> tables_;
  std::vector<BlockTable*> unused_tables_;

  // Figures without what the thread caches have not handed in yet.
  int64_t requested_ = 0, requested_peak_ = 0, allocated_peak_ = 0, n_allocations_ = 0;
  int64_t out_bytes_ = 0, out_blocks_ = 0;       // not in a span's free list: live, kept by a thread, or pending
  int64_t n_pending_ = 0;
  uint64_t reserved_ = 0, reserved_peak_ = 0, pending_free_ = 0, n_retries_ = 0, n_out_of_memory_ = 0;
};

void keep_closed(BlockPool* pool);

}  // namespace flhal
