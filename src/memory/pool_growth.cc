// src/memory/pool_growth.cc: slabs from the plugin, the out-of-memory ladder, and giving slabs back.
//
// The ladder, each step dearer than the one before, with a new attempt after each:
//   1. ask the streams what they have finished; join what became free for all
//   2. a new slab, if the limit and the plugin allow
//   3. wait for everything that pending frees wait for, empty the thread caches, ask caches above the pool to give back
//   4. return slabs without a live block to the plugin and take one of the exact size
//   5. for a small block, whole granules: a span of its class may be larger than what is left
//   6. FLHAL_E_OUT_OF_MEMORY with figures and remedy
// Locks: plugins are called without mutex_; grow_mutex_ keeps threads from growing side by side.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/config.h"
#include "core/event.h"
#include "core/log.h"
#include "core/worker.h"
#include "memory/block_pool.h"
#include "memory/byte_text.h"

namespace flhal {

static std::mutex g_reclaimers_mutex;
static std::vector<void (*)(Device*)>& reclaimers() {
  static auto* list = new std::vector<void (*)(Device*)>();
  return *list;
}

void add_reclaimer(void (*reclaim)(Device* device)) {
  std::lock_guard lock(g_reclaimers_mutex);
  reclaimers().push_back(reclaim);
}

uint64_t BlockPool::limit() {
  if (kind_ != FLHAL_MEM_DEVICE) return UINT64_MAX;
  PoolLimit limit = config_pool_limit(device_->name);
  if (limit.bytes) return limit.bytes;
  uint64_t total = device_->info.memory_bytes;
  return total ? uint64_t(limit.share * double(total)) : UINT64_MAX;
}

// ---- slabs --------------------------------------------------------------------------------------------------------

Result<Slab*> BlockPool::slab_from_plugin(uint64_t bytes, bool* exhausted) {
  auto slab = std::make_unique<Slab>();
  slab->bytes = bytes;
  slab->device = device_;
  slab->kind = kind_;
  *exhausted = false;
  if (device_ && (kind_ == FLHAL_MEM_DEVICE || plugin_pins_)) {
    Plugin& plugin = *device_->plugin;
    flhal_p_slab_v1 given{};
    given.struct_size = sizeof given;
    given.struct_type = FLHAL_ST_SLAB;
    given.bytes = bytes;
    given.align = std::max<uint64_t>(kGranule, device_->info.slab_alignment);
    given.kind = kind_;
    auto serial = plugin.lock();
    flhal_status answer = plugin_call(plugin.table.memory_alloc, device_->handle, &given);
    if (kind_ == FLHAL_MEM_PINNED) {
      bool usable = answer == FLHAL_OK && given.host && reinterpret_cast<uint64_t>(given.host) % kGranule == 0;
      if (usable) {
        slab->memory = given.memory;
        slab->host = static_cast<char*>(given.host);
        return slab.release();
      }
      if (answer == FLHAL_OK) plugin_call(plugin.table.memory_free, device_->handle, given.memory);
      plugin_pins_ = false;              // plain memory serves; the plugin copies from it as from any host pointer
    } else {
      if (answer == FLHAL_EXHAUSTED || answer == FLHAL_E_OUT_OF_MEMORY || answer == FLHAL_E_HOST_MEMORY) {
        *exhausted = true;
        return Status(FLHAL_EXHAUSTED);
      }
      if (answer > 0) {
        return fail(FLHAL_E_INTERNAL, "memory_alloc of {} answered {} for {} bytes; only FLHAL_OK, FLHAL_EXHAUSTED or a "
                    "failure are legal", plugin.id, answer, bytes);
      }
      Status status = plugin_answer(plugin, "memory_alloc", answer);
      if (status.code() == FLHAL_E_DEVICE_LOST) device_->mark_lost(last_error_text().c_str());
      FLHAL_TRY(status);
      slab->memory = given.memory;
      slab->device_address = device_->has(FLHAL_CAP_ADDRESSES) || device_->has(FLHAL_CAP_ADDRESSES_OURS) ? given.address : 0;
      slab->host = static_cast<char*>(given.host);
      return slab.release();
    }
  }
  // Plain host memory: mapped, so that it is on a granule boundary and goes back to the system at once.
  char* raw = static_cast<char*>(mmap(nullptr, bytes + kGranule, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (raw == MAP_FAILED) {
    *exhausted = true;
    return Status(FLHAL_EXHAUSTED);
  }
  char* base = reinterpret_cast<char*>((reinterpret_cast<uint64_t>(raw) + kGranule - 1) & ~(kGranule - 1));
  if (base > raw) munmap(raw, size_t(base - raw));
  if (raw + kGranule > base) munmap(base + bytes, size_t(raw + kGranule - base));
  slab->host = base;
  return slab.release();
}

void BlockPool::give_to_plugin(Slab* slab) {
  if (slab->memory) {
    auto serial = device_->plugin->lock();
    plugin_call(device_->plugin->table.memory_free, device_->handle, slab->memory);
  } else if (slab->host && slab->kind == FLHAL_MEM_PINNED) {
    munmap(slab->host, slab->bytes);
  }
  delete slab;
}

BlockPool::Grown BlockPool::grow(Arena* arena, const Request& request, uint64_t* out_address) {
  uint64_t need = request.size_class == kNoClass ? request.granules << kGranuleShift : span_bytes_of(request.size_class);
  std::lock_guard growing(grow_mutex_);
  if ((*out_address = attempt(arena, request))) return Grown::kYes;   // another thread grew meanwhile
  uint64_t ceiling = limit(), reserved;
  {
    std::lock_guard lock(mutex_);
    reserved = reserved_;
  }
  uint64_t room = ceiling > reserved ? (ceiling - reserved) & ~(kGranule - 1) : 0;
  uint64_t largest = device_ && kind_ == FLHAL_MEM_DEVICE && device_->info.largest_slab_bytes
                         ? device_->info.largest_slab_bytes & ~(kGranule - 1)
                         : UINT64_MAX;
  if (need > room) return Grown::kAtLimit;
  if (need > largest) return Grown::kExhausted;
  // A quarter of what is there already, 2 to 64 MiB: few slabs, and little that is taken in vain.
  uint64_t comfortable = std::clamp<uint64_t>(reserved / 4, 2 << 20, 64 << 20) & ~((2ull << 20) - 1);
  uint64_t sizes[2] = {std::min({std::max(need, comfortable), room, largest}), need};
  for (uint64_t bytes : sizes) {
    bool exhausted;
    Result<Slab*> got = slab_from_plugin(bytes, &exhausted);
    if (!got.ok() && !exhausted) return Grown::kFailed;
    if (!got.ok()) {
      if (bytes == need) break;
      continue;
    }
    Slab* slab = *got;
    Span* span;
    {
      std::lock_guard lock(mutex_);
      span = new_span_locked();
    }
    span->requested = &span->own_requested;
    span->own_requested.store(0, std::memory_order_relaxed);
    span->arena = &neutral_;
    slab->first = span;
    if (!AddressMap::publish(slab).ok()) {
      give_to_plugin(slab);
      return Grown::kFailed;
    }
    {
      std::lock_guard lock(mutex_);
      slabs_.push_back(slab);
      reserved_ += slab->bytes;
      reserved_peak_ = std::max(reserved_peak_, reserved_);
      list_free_locked(span, &neutral_, 0);
    }
    log(kLogDebug, "memory: {} slab of {} for {}", kind_ == FLHAL_MEM_PINNED ? "pinned" : "device", byte_text(bytes),
        device_ ? device_->name : "the host");
    if ((*out_address = attempt(arena, request))) return Grown::kYes;
    // Others took from it before we could: the next size, or the next step of the ladder.
  }
  return Grown::kExhausted;
}

uint64_t BlockPool::release_slabs() {
  std::vector<Slab*> empty;
  uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    dissolve_empty_locked();
    collect_locked();
    std::erase_if(slabs_, [&](Slab* slab) {
      Span* span = slab->first;
      if (span->kind != Span::kFree || span->index != &neutral_.free || span->next_phys) return false;
      neutral_.free.remove(span);
      recycle_span_locked(span);
      span->slab = nullptr;
      empty.push_back(slab);
      bytes += slab->bytes;
      return true;
    });
    reserved_ -= bytes;
  }
  for (Slab* slab : empty) {
    AddressMap::unpublish(slab);
    give_to_plugin(slab);
  }
  return bytes;
}

// ---- the ladder ---------------------------------------------------------------------------------------------------

void BlockPool::ask_streams() {
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(mutex_);
    for (Arena* arena : arenas_)
      if (!arena->free.empty()) streams.push_back(arena->stream);
  }
  for (Stream* stream : streams) (void)stream->reached(stream->here().sequence);
  retire_poll();
}

// A queued call runs short of memory: what is queued behind it on its own stream, and streams that wait for it, cannot be
// waited for. Others are, as long as they move.
static void wait_from_worker(Stream* stream) {
  const uint64_t sequence = stream->here().sequence;
  Worker::Blocked blocked;
  while (!stream->reached(sequence) && stream->worker_moves()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void BlockPool::finish_pending() {
  std::vector<Stream*> streams;
  {
    std::lock_guard lock(mutex_);
    streams = foreign_;
    for (Arena* arena : arenas_) streams.push_back(arena->stream);
  }
  if (device_) {
    StreamFamily* family = family_of(device_);
    std::lock_guard lock(family->mutex);
    for (Stream* stream : family->streams) streams.push_back(stream);
  }
  for (Stream* stream : streams) {
    if (Worker::current() == nullptr) (void)stream->wait_for(stream->here().sequence);
    else wait_from_worker(stream);
  }
  retire_poll();
}

void BlockPool::drop_caches() {
  std::lock_guard lock(mutex_);
  for (ThreadCache* cache : caches_) {
    if (present_cache(cache->arena) == cache) flush_cache_locked(cache, true);
    else for (uint32_t c = 0; c < kCachedClasses; ++c) cache->bins[c].limit.store(cache->floor(c), std::memory_order_relaxed);
  }
}

Result<uint64_t> BlockPool::climb_ladder(Arena* arena, const Request& request) {
  uint64_t address = 0;
  ask_streams();
  {
    std::lock_guard lock(mutex_);
    collect_locked();
    if (request.size_class == kNoClass) absorb_locked(arena);
  }
  if ((address = attempt(arena, request))) return address;
  Grown grown = grow(arena, request, &address);
  if (grown == Grown::kYes) return address;
  if (grown == Grown::kFailed) return Status(last_error_code());

  {
    std::lock_guard lock(mutex_);
    ++n_retries_;
  }
  drop_caches();
  finish_pending();
  {
    std::lock_guard lock(mutex_);
    dissolve_empty_locked();
    collect_locked();
  }
  if ((address = attempt(arena, request))) return address;
  std::vector<void (*)(Device*)> ask;
  {
    std::lock_guard lock(g_reclaimers_mutex);
    ask = reclaimers();
  }
  if (device_)
    for (auto* reclaim : ask) reclaim(device_);
  if (!ask.empty()) finish_pending();
  release_slabs();
  if ((address = attempt(arena, request))) return address;
  grown = grow(arena, request, &address);
  if (grown == Grown::kYes) return address;
  if (grown == Grown::kFailed) return Status(last_error_code());
  if (request.size_class != kNoClass) {
    const Request whole{request.bytes, kNoClass, (request.bytes + kGranule - 1) >> kGranuleShift};
    {
      std::lock_guard lock(mutex_);
      absorb_locked(arena);
    }
    if ((address = attempt(arena, whole))) return address;
    grown = grow(arena, whole, &address);
    if (grown == Grown::kYes) return address;
    if (grown == Grown::kFailed) return Status(last_error_code());
  }
  return out_of_memory(request);
}

Status BlockPool::out_of_memory(const Request& request) {
  uint64_t allocated, reserved, largest, pending;
  {
    std::lock_guard lock(mutex_);
    ++n_out_of_memory_;
    allocated = uint64_t(std::max<int64_t>(allocated_locked(), 0));
    reserved = reserved_;
    largest = largest_free_locked();
    pending = pending_free_;
  }
  if (kind_ == FLHAL_MEM_PINNED) {
    return fail(FLHAL_E_HOST_MEMORY, "flhal_host_alloc: out of host memory: requested {}; allocated {}, reserved {}, largest "
                "free block {}; free pinned memory or load less at once", byte_text(request.bytes), byte_text(allocated),
                byte_text(reserved), byte_text(largest));
  }
  uint64_t ceiling = limit();
  uint64_t slab_max = device_->info.largest_slab_bytes;
  std::string remedy;
  if (slab_max && request.bytes > slab_max) {
    remedy = fmt::format("the device gives at most {} at once: use smaller tensors", byte_text(slab_max));
  } else if (ceiling != UINT64_MAX && reserved + request.bytes > ceiling) {
    remedy = "free tensors, use a smaller batch, or raise the limit (memory_pool_size, e.g. TORCH_FL_MEMORY_POOL_SIZE=90%)";
  } else if (reserved - std::min(reserved, allocated) >= request.bytes) {
    remedy = "enough is free but in pieces: free tensors of similar size, or allocate the largest ones first";
  } else {
    remedy = "the device itself is full: free tensors, use a smaller batch, or stop other programs that use it";
  }
  return fail(FLHAL_E_OUT_OF_MEMORY, "flhal_alloc: out of memory on {}: requested {}; allocated {}, reserved {}, largest free "
              "block {}, waiting for queued work {}, limit {}; {}", device_->name, byte_text(request.bytes),
              byte_text(allocated), byte_text(reserved), byte_text(largest), byte_text(pending),
              ceiling == UINT64_MAX ? std::string("none") : byte_text(ceiling), remedy);
}

// ---- trim and close -----------------------------------------------------------------------------------------------

Status BlockPool::trim() {
  ask_streams();
  drop_caches();
  ask_streams();
  release_slabs();
  return FLHAL_OK;
}

void BlockPool::close() {
  retire_poll();
  drop_caches();
  release_slabs();
  std::vector<Slab*> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(slabs_);
    reserved_ = 0;
    requested_ = out_bytes_ = out_blocks_ = n_pending_ = 0;
    pending_free_ = 0;
    for (Slab* slab : left) {
      slab->dead = true;
      for (Span* span = slab->first; span; span = span->next_phys) {
        if (span->kind == Span::kFree && span->index) span->index->remove(span);
        for (uint32_t i = 0; i < (span->kind == Span::kSmall ? span->n_blocks : 1); ++i)
          span->requested[i].store(0, std::memory_order_relaxed);
      }
    }
    for (Arena* arena : arenas_) std::fill(std::begin(arena->partial), std::end(arena->partial), nullptr);
    used_on_.clear();
  }
  // The ranges stay published as dead, so that a late free of an old tensor cannot hit a new one.
  for (Slab* slab : left) {
    if (slab->memory) {
      auto serial = device_->plugin->lock();
      plugin_call(device_->plugin->table.memory_free, device_->handle, slab->memory);
    }
    slab->memory = nullptr;
    slab->host = nullptr;
  }
}

}  // namespace flhal
