// src/memory/pool.cc: allocating and freeing; the parts of BlockPool that every block goes through.
#include "memory/pool.h"

#include <algorithm>

#include "core/fork_guard.h"
#include "memory/block_pool.h"

namespace flhal {

BlockPool::BlockPool(Device* device, uint32_t kind) : device_(device), kind_(kind) { neutral_.pool = this; }

Arena* BlockPool::arena_for(Stream* stream) {
  if (stream == nullptr) return &neutral_;
  std::lock_guard lock(mutex_);
  Arena* arena = stream->arena.load(std::memory_order_relaxed);
  if (arena && arena->pool == this) return arena;
  // One for each stream, also without queues of its own: a worker may run its calls, and then its free blocks are its alone.
  arena = new Arena();                   // lives as long as the stream, which is for ever
  arena->pool = this;
  arena->stream = stream;
  arena->cache_slot = stream->cache_slot.load(std::memory_order_relaxed);
  arenas_.push_back(arena);
  stream->arena.store(arena, std::memory_order_release);
  return arena;
}

void BlockPool::cached_locked(int64_t* bytes, int64_t* blocks) const {
  *bytes = *blocks = 0;
  for (ThreadCache* cache : caches_) {
    for (uint32_t c = 0; c < kCachedClasses; ++c) {
      *blocks += cache->count(c);
      *bytes += int64_t(cache->count(c)) * kClassBytes[c];
    }
  }
}

int64_t BlockPool::allocated_locked() const {
  int64_t bytes, blocks;
  cached_locked(&bytes, &blocks);
  return out_bytes_ - bytes - int64_t(pending_free_);
}

void BlockPool::count_locked(int64_t requested) {
  requested_ += requested;
  if (requested < 0) return;
  ++n_allocations_;
  int64_t with_threads = requested_;     // what other threads hold counts for the peak as well
  for (ThreadCache* cache : caches_) with_threads += cache->figures.requested.load(std::memory_order_relaxed);
  requested_peak_ = std::max(requested_peak_, with_threads);
  // out_bytes_ alone is an upper bound and cheap; the sum over all bins is only made when it could matter.
  if (out_bytes_ > allocated_peak_) allocated_peak_ = std::max(allocated_peak_, allocated_locked());
}

uint64_t BlockPool::attempt(Arena* arena, const Request& request) {
  ThreadCache* cache = nullptr;
  if (request.size_class < kCachedClasses && arena->stream) cache = install_cache(arena);
  else cache = present_cache(arena);
  std::lock_guard lock(mutex_);
  take_figures_locked(cache);
  if (request.size_class == kNoClass) {
    uint64_t address = take_big_locked(arena, request);
    if (address) count_locked(int64_t(request.bytes));
    return address;
  }
  CachedBlock block;
  if (!take_small_locked(arena, request.size_class, &block)) return 0;
  block.requested->store(request.bytes, std::memory_order_relaxed);
  if (cache && request.size_class < kCachedClasses) {   // half of what it may keep, so that the next free fits as well
    flush_cache_locked(cache);
    CacheBin& bin = cache->bins[request.size_class];
    CachedBlock* top = bin.top.load(std::memory_order_relaxed);
    CachedBlock* wanted = cache->floor(request.size_class) + cached_blocks_max(request.size_class) / 2;
    // Only from spans that exist: a cache is never a reason to take more memory.
    while (top < wanted && arena->partial[request.size_class] && take_small_locked(arena, request.size_class, top)) ++top;
    bin.top.store(top, std::memory_order_relaxed);
  }
  count_locked(int64_t(request.bytes));
  return block.address;
}

Result<uint64_t> BlockPool::allocate(Stream* stream, uint64_t bytes) {
  if (bytes == 0) return uint64_t(0);
  Request request{bytes, kNoClass, 0};
  if (bytes <= kSmallBytesMax) request.size_class = class_of(bytes);
  else if (bytes < kAddressLimit) request.granules = (bytes + kGranule - 1) >> kGranuleShift;
  else return out_of_memory(request);
  if (device_ && device_->lost()) return stream->unusable_failure("flhal_alloc");
  Arena* arena = arena_for(stream);
  uint64_t address = attempt(arena, request);
  if (address) return address;
  return climb_ladder(arena, request);
}

// ---- giving back --------------------------------------------------------------------------------------------------

namespace {
struct PendingBlock {
  BlockPool* pool;
  Span* span;
  uint64_t address, bytes;
};
}  // namespace

Status BlockPool::free_slowly(uint64_t address, Span* span) {
  const char* function = kind_ == FLHAL_MEM_PINNED ? "flhal_host_free" : "flhal_free";
  uint64_t offset = address - span->base;
  uint64_t block = offset * span->magic >> kMagicShift;
  uint64_t start = block * span->block_bytes;
  std::vector<Stream*> streams;
  uint64_t block_bytes = span->block_bytes;
  {
    std::lock_guard lock(mutex_);
    uint64_t requested = span->requested[block].load(std::memory_order_relaxed);
    if (span->slab && span->slab->dead) return FLHAL_OK;
    if (requested == 0) {
      return fail(FLHAL_E_INVALID, "{}: {:#x} is not a live allocation; was it freed twice?", function, address);
    }
    if (start != offset) {
      return fail(FLHAL_E_INVALID, "{}: {:#x} lies {} bytes inside an allocation of {} bytes; give its first byte {:#x}",
                  function, address, offset - start, requested, span->base + start);
    }
    span->requested[block].store(0, std::memory_order_relaxed);
    take_figures_locked(present_cache(span->arena));
    count_locked(-int64_t(requested));
    if (span->marked != 0) {
      auto found = used_on_.find(address);
      if (found != used_on_.end()) {
        streams = std::move(found->second);
        used_on_.erase(found);
        if (--span->marked == 0 && span->size_class < kCachedClasses && span->arena->stream)
          span->cached_for.store(span->arena, std::memory_order_relaxed);
      }
    }
    if (streams.empty()) {
      // The caller's full cache gives everything back, so that its next frees are cheap again.
      if (ThreadCache* cache = span->size_class < kCachedClasses ? present_cache(span->arena) : nullptr) {
        flush_cache_locked(cache);
      }
      free_block_locked(span, address);
      return FLHAL_OK;
    }
    pending_free_ += block_bytes;
    ++n_pending_;
  }
  // Nobody can take the block meanwhile: its cell says free, but no list has it.
  std::vector<Point> points;
  for (Stream* stream : streams) points.push_back(stream->here());
  retire(points.data(), uint32_t(points.size()), release_pending, new PendingBlock{this, span, address, block_bytes});
  return FLHAL_OK;
}

void BlockPool::release_pending(void* context) {
  std::unique_ptr<PendingBlock> pending(static_cast<PendingBlock*>(context));
  BlockPool* pool = pending->pool;
  std::lock_guard lock(pool->mutex_);
  if (pending->span->slab == nullptr || pending->span->slab->dead) return;   // closed meanwhile: nothing is counted any more
  pool->pending_free_ -= pending->bytes;
  --pool->n_pending_;
  pool->free_block_locked(pending->span, pending->address);
}

void BlockPool::free_block_locked(Span* span, uint64_t address) {
  if (span->kind == Span::kSmall) {
    put_small_locked(span, uint32_t((address - span->base) * span->magic >> kMagicShift));
  } else {
    out_bytes_ -= int64_t(span->bytes);
    --out_blocks_;
    free_span_locked(span);
  }
}

Status BlockPool::used_on(uint64_t address, Span* span, Stream* stream) {
  if (!stream->deferred()) return FLHAL_OK;      // all its work is over
  uint64_t block = (address - span->base) * span->magic >> kMagicShift;
  uint64_t start = span->base + block * span->block_bytes;
  std::lock_guard lock(mutex_);
  if (span->arena->stream == stream) return FLHAL_OK;
  if (span->requested[block].load(std::memory_order_relaxed) == 0) {
    return fail(FLHAL_E_INVALID, "{}: {:#x} is not a live allocation",
                kind_ == FLHAL_MEM_PINNED ? "flhal_host_used_on" : "flhal_memory_used_on", address);
  }
  std::vector<Stream*>& streams = used_on_[start];
  if (streams.empty()) {
    ++span->marked;
    span->cached_for.store(nullptr, std::memory_order_relaxed);   // its frees come here from now on
  }
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  if (stream->device != device_ && std::find(foreign_.begin(), foreign_.end(), stream) == foreign_.end()) {
    foreign_.push_back(stream);
  }
  return FLHAL_OK;
}

// ---- the functions of pool.h --------------------------------------------------------------------------------------

Result<Pool*> make_pool(Device* device) { return static_cast<Pool*>(new BlockPool(device, FLHAL_MEM_DEVICE)); }

// Closed pools are kept: dead addresses may still be freed, and leak checkers should see that this is meant.
void keep_closed(BlockPool* pool) {
  static std::mutex mutex;
  static auto* closed = new std::vector<BlockPool*>();
  std::lock_guard lock(mutex);
  closed->push_back(pool);
}

void close_pool(Device* device) {
  if (device->pool == nullptr) return;
  auto* pool = static_cast<BlockPool*>(device->pool);
  pool->close();
  keep_closed(pool);
  device->pool = nullptr;
}

Result<uint64_t> pool_allocate(Stream* stream, uint64_t bytes) {
  if (uint64_t address = take_cached(stream, bytes)) return address;
  return stream->device->pool->allocate(stream, bytes);
}

Status pool_free(uint64_t address) {
  if (address == 0 || forked()) return FLHAL_OK;
  if (give_cached(address)) return FLHAL_OK;
  Span* span = span_at(g_device_map, address);
  if (span == nullptr || span->arena == nullptr) {
    return fail(FLHAL_E_INVALID, "flhal_free: {:#x} is not device memory; give an address that flhal_alloc returned", address);
  }
  return span->arena->pool->free_slowly(address, span);
}

Status pool_used_on(uint64_t address, Stream* stream) {
  if (address == 0) return FLHAL_OK;
  Span* span = span_at(g_device_map, address);
  if (span == nullptr || span->arena == nullptr) {
    return fail(FLHAL_E_INVALID, "flhal_memory_used_on: {:#x} is not device memory; give an address that flhal_alloc returned",
                address);
  }
  return span->arena->pool->used_on(address, span, stream);
}

Result<Temporary> Temporary::make(Stream* stream, uint64_t bytes) {
  FLHAL_ASSIGN(uint64_t address, pool_allocate(stream, bytes));
  return Temporary(address);
}

Temporary::~Temporary() { (void)pool_free(address_); }

}  // namespace flhal
