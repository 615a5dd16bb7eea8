// src/memory/pool_spans.cc: cutting spans into blocks and joining them again. Everything here runs under the pool's lock.
//
// Idea: a free span is listed either with its stream (free there at once, for others at free_sequence) or with the pool
// (free for all). Only neighbours of the same list are joined; collect_locked() moves spans from the first to the second.
#include <algorithm>

#include "memory/block_pool.h"

namespace flhal {

Span* BlockPool::new_span_locked() {
  if (!unused_spans_.empty()) {
    Span* span = unused_spans_.back();
    unused_spans_.pop_back();
    return span;
  }
  return &spans_.emplace_back();
}

void BlockPool::recycle_span_locked(Span* span) {
  span->kind = Span::kUnused;
  span->bytes = 0;                       // a stale entry of the address map finds nothing
  span->magic = 0;
  span->size_class = kNoClass;
  span->cached_for.store(nullptr, std::memory_order_relaxed);
  span->mapped = false;
  span->prev_phys = span->next_phys = nullptr;
  unused_spans_.push_back(span);
}

void BlockPool::list_free_locked(Span* span, Arena* owner, uint64_t sequence) {
  span->kind = Span::kFree;
  span->arena = owner;
  span->free_sequence = sequence;
  span->size_class = kNoClass;
  span->cached_for.store(nullptr, std::memory_order_relaxed);
  span->magic = 0;
  span->requested = &span->own_requested;
  span->own_requested.store(0, std::memory_order_relaxed);
  span->block_bytes = span->bytes;
  owner->free.insert(span);
}

// Takes the free neighbours that `index` lists into `span` (itself not listed). Gives the span that is left.
Span* BlockPool::join_locked(Span* span, FreeIndex* index, uint64_t* sequence) {
  auto swallow = [&](Span* left, Span* right) {
    left->bytes += right->bytes;
    left->mapped = false;
    left->next_phys = right->next_phys;
    if (right->next_phys) right->next_phys->prev_phys = left;
    recycle_span_locked(right);
  };
  if (Span* right = span->next_phys; right && right->kind == Span::kFree && right->index == index) {
    index->remove(right);
    *sequence = std::max(*sequence, right->free_sequence);
    swallow(span, right);
  }
  if (Span* left = span->prev_phys; left && left->kind == Span::kFree && left->index == index) {
    index->remove(left);
    *sequence = std::max(*sequence, left->free_sequence);
    swallow(left, span);
    span = left;
  }
  return span;
}

void BlockPool::free_span_locked(Span* span) {
  // Without queues, and with nothing for a worker to do, all work is over by now, so the span is free for all.
  Arena* owner = span->arena->ordered() ? span->arena : &neutral_;
  uint64_t sequence = owner->stream ? owner->stream->here().sequence : 0;
  span = join_locked(span, &owner->free, &sequence);
  list_free_locked(span, owner, sequence);
}

void BlockPool::collect_locked() {
  std::vector<Span*> moved;
  for (Arena* arena : arenas_) {
    if (arena->free.empty()) continue;
    arena->free.each([&](Span* span) {
      if (!arena->stream->known_reached(span->free_sequence)) return;
      arena->free.remove(span);
      span->kind = Span::kUnused;
      span->arena = &neutral_;           // joined below, when no iteration is under way
      moved.push_back(span);
    });
  }
  for (Span* span : moved) {
    uint64_t sequence = 0;
    Span* joined = join_locked(span, &neutral_.free, &sequence);
    list_free_locked(joined, &neutral_, 0);
  }
}

void BlockPool::absorb_locked(Arena* arena) {
  if (arena->stream == nullptr) return;
  std::vector<Span*> own;
  arena->free.each([&](Span* span) { own.push_back(span); });
  for (Span* span : own) {
    if (span->kind != Span::kFree || span->index != &arena->free) continue;   // joined to an earlier one
    arena->free.remove(span);
    uint64_t sequence = span->free_sequence;
    Span* joined = join_locked(span, &neutral_.free, &sequence);
    joined = join_locked(joined, &arena->free, &sequence);
    list_free_locked(joined, arena, sequence);
  }
}

Span* BlockPool::take_span_locked(Arena* arena, uint64_t granules) {
  Arena* from = arena;
  Span* span = arena->free.find(granules);
  if (span == nullptr && arena != &neutral_) {
    from = &neutral_;
    span = neutral_.free.find(granules);
  }
  if (span == nullptr) return nullptr;
  from->free.remove(span);
  uint64_t bytes = granules << kGranuleShift;
  if (span->bytes > bytes) {
    Span* rest = new_span_locked();
    rest->slab = span->slab;
    rest->base = span->base + bytes;
    rest->bytes = span->bytes - bytes;
    rest->mapped = false;
    rest->prev_phys = span;
    rest->next_phys = span->next_phys;
    if (rest->next_phys) rest->next_phys->prev_phys = rest;
    span->next_phys = rest;
    span->bytes = bytes;
    list_free_locked(rest, from, span->free_sequence);
  }
  span->arena = arena;
  span->cache_slot = arena->cache_slot;
  span->block_bytes = bytes;
  if (!span->mapped) AddressMap::assign(span);
  return span;
}

uint64_t BlockPool::take_big_locked(Arena* arena, const Request& request) {
  Span* span = take_span_locked(arena, request.granules);
  if (span == nullptr) return 0;
  span->kind = Span::kBig;
  span->own_requested.store(request.bytes, std::memory_order_relaxed);
  out_bytes_ += int64_t(span->bytes);
  ++out_blocks_;
  return span->base;
}

// ---- small blocks -------------------------------------------------------------------------------------------------

static void unlist(Arena* arena, uint32_t size_class, Span* span) {
  if (span->prev) span->prev->next = span->next;
  else arena->partial[size_class] = span->next;
  if (span->next) span->next->prev = span->prev;
  span->prev = span->next = nullptr;
  span->listed = false;
}

static void list(Arena* arena, uint32_t size_class, Span* span) {
  span->prev = nullptr;
  span->next = arena->partial[size_class];
  if (span->next) span->next->prev = span;
  arena->partial[size_class] = span;
  span->listed = true;
}

bool BlockPool::take_small_locked(Arena* arena, uint32_t size_class, CachedBlock* out) {
  Span* span = arena->partial[size_class];
  if (span == nullptr) {
    uint64_t span_bytes = span_bytes_of(size_class);
    span = take_span_locked(arena, span_bytes >> kGranuleShift);
    if (span == nullptr) return false;
    if (unused_tables_.empty()) unused_tables_.push_back(&tables_.emplace_back());
    BlockTable* table = unused_tables_.back();
    unused_tables_.pop_back();
    uint32_t block_bytes = kClassBytes[size_class];
    span->kind = Span::kSmall;
    span->table = table;
    span->n_blocks = span->n_free = uint32_t(span_bytes / block_bytes);
    for (uint32_t i = 0; i < span->n_blocks; ++i) {
      table->requested[i].store(0, std::memory_order_relaxed);
      table->free[i] = uint16_t(span->n_blocks - 1 - i);   // the lowest first
    }
    span->requested = table->requested;
    span->block_bytes = block_bytes;
    span->magic = ((1ull << kMagicShift) + block_bytes - 1) / block_bytes;
    span->size_class = uint8_t(size_class);
    if (size_class < kCachedClasses && arena->stream) span->cached_for.store(arena, std::memory_order_relaxed);
    list(arena, size_class, span);
  }
  uint32_t block = span->table->free[--span->n_free];
  out->address = span->base + block * span->block_bytes;
  out->requested = &span->requested[block];
  if (span->n_free == 0) unlist(arena, size_class, span);
  out_bytes_ += int64_t(span->block_bytes);
  ++out_blocks_;
  return true;
}

void BlockPool::put_small_locked(Span* span, uint32_t block) {
  span->table->free[span->n_free++] = uint16_t(block);
  out_bytes_ -= int64_t(span->block_bytes);
  --out_blocks_;
  if (!span->listed) list(span->arena, span->size_class, span);
  // One empty span is kept: a loop that allocates and frees one block would else cut and join it every time.
  if (span->n_free == span->n_blocks && (span->next || span->prev)) dissolve_locked(span);
}

void BlockPool::dissolve_locked(Span* span) {
  unlist(span->arena, span->size_class, span);
  unused_tables_.push_back(span->table);
  span->table = nullptr;
  span->n_blocks = span->n_free = 0;
  free_span_locked(span);
}

void BlockPool::dissolve_empty_locked() {
  auto visit = [&](Arena* arena) {
    for (uint32_t c = 0; c < kClasses; ++c)
      for (Span *span = arena->partial[c], *next; span; span = next) {
        next = span->next;
        if (span->n_free == span->n_blocks) dissolve_locked(span);
      }
  };
  visit(&neutral_);
  for (Arena* arena : arenas_) visit(arena);
}

void BlockPool::take_figures_locked(ThreadCache* cache) {
  if (cache == nullptr) return;
  CacheFigures& figures = cache->figures;
  requested_peak_ = std::max(requested_peak_, requested_ + figures.requested_peak.load(std::memory_order_relaxed));
  requested_ += figures.requested.exchange(0, std::memory_order_relaxed);
  n_allocations_ += figures.n_allocations.exchange(0, std::memory_order_relaxed);
  figures.requested_peak.store(0, std::memory_order_relaxed);
}

// Gives back what a thread kept, and takes its figures over. The caller is the thread that owns the cache.
void BlockPool::flush_cache_locked(ThreadCache* cache, bool everything) {
  take_figures_locked(cache);
  for (uint32_t c = 0; c < kCachedClasses; ++c) {
    CacheBin& bin = cache->bins[c];
    CachedBlock* floor = cache->floor(c);
    bool all = everything || bin.limit.load(std::memory_order_relaxed) == floor;   // the ladder asked
    CachedBlock* keep = all ? floor : floor + cached_blocks_max(c) / 2;
    CachedBlock* top = bin.top.load(std::memory_order_relaxed);
    while (top > keep) {
      CachedBlock block = *--top;
      Span* span = span_at(g_device_map, block.address);
      if (span == nullptr || span->slab->dead) continue;
      put_small_locked(span, uint32_t((block.address - span->base) * span->magic >> kMagicShift));
    }
    bin.top.store(top, std::memory_order_relaxed);
    bin.limit.store(floor + cached_blocks_max(c), std::memory_order_relaxed);
  }
}

}  // namespace flhal
