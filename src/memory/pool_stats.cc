// src/memory/pool_stats.cc: the figures of a pool, and the check of its invariants.
#include <algorithm>
#include <cstring>

#include "memory/block_pool.h"

namespace flhal {

uint64_t BlockPool::largest_free_locked() const {
  uint64_t largest = 0;
  auto visit = [&](Span* span) { largest = std::max(largest, span->bytes); };
  neutral_.free.each(visit);
  for (Arena* arena : arenas_) arena->free.each(visit);
  return largest;
}

void BlockPool::stats(flhal_memory_stats* out) {
  flhal_memory_stats s{};
  {
    std::lock_guard lock(mutex_);
    int64_t requested = requested_, requested_peak = requested_, n_allocations = n_allocations_, bytes, blocks;
    for (ThreadCache* cache : caches_) {
      requested += cache->figures.requested.load(std::memory_order_relaxed);
      requested_peak += cache->figures.requested_peak.load(std::memory_order_relaxed);
      n_allocations += cache->figures.n_allocations.load(std::memory_order_relaxed);
    }
    cached_locked(&bytes, &blocks);
    int64_t live = out_blocks_ - blocks - n_pending_;
    allocated_peak_ = std::max(allocated_peak_, allocated_locked());
    auto positive = [](int64_t v) { return uint64_t(std::max<int64_t>(v, 0)); };
    s.requested = positive(requested);
    s.requested_peak = positive(std::max({requested_peak_, requested_peak, requested}));
    s.allocated = positive(allocated_locked());
    s.allocated_peak = std::max(positive(allocated_peak_), s.requested_peak);
    s.n_allocations = positive(n_allocations);
    s.n_frees = positive(n_allocations - live);
    s.n_live = positive(live);
    s.reserved = reserved_;
    s.reserved_peak = reserved_peak_;
    s.pending_free = pending_free_;
    s.largest_free_block = largest_free_locked();
    s.n_slabs = slabs_.size();
    s.n_retries = n_retries_;
    s.n_out_of_memory = n_out_of_memory_;
  }
  s.limit = limit();
  if (device_) {
    s.device_total = device_->info.memory_bytes;
    s.device_free = s.device_total > s.reserved ? s.device_total - s.reserved : 0;
    if (device_->plugin->has_budget && !device_->lost()) {
      uint64_t free_bytes = 0, total_bytes = 0;
      auto serial = device_->plugin->lock();
      if (plugin_call(device_->plugin->table.memory_budget, device_->handle, &free_bytes, &total_bytes) == FLHAL_OK) {
        s.device_free = free_bytes;
        s.device_total = total_bytes;
      }
    }
  }
  uint32_t size = std::min<uint32_t>(out->struct_size, sizeof s);
  s.struct_size = out->struct_size;
  std::memcpy(out, &s, size);
}

void BlockPool::reset_peaks() {
  std::lock_guard lock(mutex_);
  for (ThreadCache* cache : caches_) {
    CacheFigures& f = cache->figures;
    // The owner may be adding right now; then its next peak comes a little late, which a reset cannot mean to exclude.
    f.requested_peak.store(std::max<int64_t>(f.requested.load(std::memory_order_relaxed), 0), std::memory_order_relaxed);
  }
  requested_peak_ = requested_;
  allocated_peak_ = allocated_locked();
  reserved_peak_ = reserved_;
}

#define POOL_CHECK(condition, ...)                                                                       \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      return fail(FLHAL_E_INTERNAL, "BlockPool::check: {} is not true: " #condition,                     \
                  fmt::format(__VA_ARGS__));                                                             \
  } while (0)

Status BlockPool::check() {
  std::lock_guard lock(mutex_);
  uint64_t reserved = 0, used = 0, listed = 0, found_listed = 0;
  const GranuleTable& table = kind_ == FLHAL_MEM_PINNED ? g_pinned_map : g_device_map;
  for (Slab* slab : slabs_) {
    reserved += slab->bytes;
    uint64_t at = slab->base;
    Span* before = nullptr;
    for (Span* span = slab->first; span; before = span, span = span->next_phys) {
      POOL_CHECK(span->slab == slab && span->prev_phys == before, "span {:#x} is linked in its slab", span->base);
      POOL_CHECK(span->base == at && span->bytes && span->bytes % kGranule == 0, "span {:#x} follows its neighbour", span->base);
      at += span->bytes;
      if (span->kind == Span::kFree) {
        ++found_listed;
        POOL_CHECK(span->index == &span->arena->free && span->index->listed_where_it_belongs(span),
                   "free span {:#x} is listed in its bin", span->base);
        POOL_CHECK(span->own_requested.load() == 0 && span->marked == 0, "free span {:#x} has no live block", span->base);
        if (before && before->kind == Span::kFree)
          POOL_CHECK(before->index != span->index, "free neighbours {:#x} of one list are joined", span->base);
        continue;
      }
      POOL_CHECK(span->kind == Span::kBig || span->kind == Span::kSmall, "span {:#x} has a kind", span->base);
      for (uint64_t a = span->base; a < span->base + span->bytes; a += kGranule)
        POOL_CHECK(span_at(table, a) == span, "entry {:#x} names its span", a);
      if (span->kind == Span::kBig) {
        POOL_CHECK(span->requested == &span->own_requested, "big span {:#x} has one block", span->base);
        POOL_CHECK(span->own_requested.load() <= span->bytes, "big span {:#x} holds what was asked for", span->base);
        if (span->own_requested.load()) used += span->bytes;
      } else {
        uint32_t live = 0;
        for (uint32_t i = 0; i < span->n_blocks; ++i) {
          uint64_t asked = span->requested[i].load();
          POOL_CHECK(asked <= span->block_bytes, "block {} of {:#x} holds what was asked for", i, span->base);
          if (asked) ++live;
        }
        for (uint32_t i = 0; i < span->n_free; ++i)
          POOL_CHECK(span->requested[span->table->free[i]].load() == 0, "free block {} of {:#x} is not live",
                     span->table->free[i], span->base);
        POOL_CHECK(live + span->n_free <= span->n_blocks, "blocks of {:#x} are live, free or kept by a thread", span->base);
        POOL_CHECK(span->listed == (span->n_free != 0), "span {:#x} is listed when it has free blocks", span->base);
        used += live * span->block_bytes;
      }
    }
    POOL_CHECK(at == slab->base + slab->bytes, "spans fill slab {:#x}", slab->base);
  }
  POOL_CHECK(reserved == reserved_, "reserved {} is the sum of slabs {}", reserved_, reserved);
  auto count = [&](Span*) { ++listed; };
  neutral_.free.each(count);
  for (Arena* arena : arenas_) arena->free.each(count);
  POOL_CHECK(listed == found_listed, "{} listed spans are the {} free ones", listed, found_listed);
  // Exact only while no thread is inside its cache; check() is for quiet moments.
  POOL_CHECK(allocated_locked() == int64_t(used), "allocated {} is the sum of live blocks {}", allocated_locked(), used);
  return FLHAL_OK;
}

}  // namespace flhal
