// src/memory/pinned.cc: pools of host memory, one per device that can pin and one for all; see pinned.h.
#include "memory/pinned.h"

#include <map>

#include "core/fork_guard.h"
#include "memory/block_pool.h"

namespace flhal {

static std::mutex g_pools_mutex;
static std::map<Device*, BlockPool*>& pools() {
  static auto* map = new std::map<Device*, BlockPool*>();   // never destroyed: frees come until the process is gone
  return *map;
}

static BlockPool* pool_for(Device* device) {
  std::lock_guard lock(g_pools_mutex);
  BlockPool*& pool = pools()[device];
  if (pool == nullptr) pool = new BlockPool(device, FLHAL_MEM_PINNED);
  return pool;
}

Pool* pinned_pool(Device* device) {
  std::lock_guard lock(g_pools_mutex);
  auto found = pools().find(device);
  return found == pools().end() ? nullptr : found->second;
}

static uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

Result<void*> pinned_alloc(Device* device, uint64_t bytes) {
  FLHAL_ASSIGN(uint64_t address, pool_for(device)->allocate(nullptr, bytes ? bytes : 1));
  return reinterpret_cast<void*>(address);
}

Status pinned_free(const void* pointer) {
  if (pointer == nullptr || forked()) return FLHAL_OK;
  Span* span = span_at(g_pinned_map, number(pointer));
  if (span == nullptr) {
    return fail(FLHAL_E_INVALID, "flhal_host_free: {} is not pinned memory; give a pointer that flhal_host_alloc returned",
                pointer);
  }
  return span->arena->pool->free_slowly(number(pointer), span);
}

bool is_pinned_range(const void* pointer, uint64_t bytes) {
  Span* span = span_at(g_pinned_map, number(pointer));
  if (span == nullptr) return false;
  uint64_t block = (number(pointer) - span->base) * span->magic >> kMagicShift;
  uint64_t offset = number(pointer) - span->base - block * span->block_bytes;
  uint64_t live = span->requested[block].load(std::memory_order_relaxed);
  return offset < live && bytes <= live - offset;
}

bool is_pinned(const void* pointer) { return is_pinned_range(pointer, 1); }

Status pinned_used_on(const void* pointer, Stream* stream) {
  Span* span = span_at(g_pinned_map, number(pointer));
  if (span == nullptr) {
    return fail(FLHAL_E_INVALID, "flhal_host_used_on: {} is not pinned memory; give a pointer into memory of flhal_host_alloc",
                pointer);
  }
  return span->arena->pool->used_on(number(pointer), span, stream);
}

void close_pinned(Device* device) {
  BlockPool* pool;
  {
    std::lock_guard lock(g_pools_mutex);
    auto found = pools().find(device);
    if (found == pools().end()) return;
    pool = found->second;
    pools().erase(found);
  }
  pool->close();
  keep_closed(pool);
}

Result<Staging> Staging::make(Stream* stream, uint64_t bytes) {
  FLHAL_ASSIGN(void* memory, pinned_alloc(stream->device, bytes));
  return Staging(stream, static_cast<char*>(memory));
}

Staging::~Staging() {
  if (bytes_ == nullptr) return;
  (void)pinned_used_on(bytes_, stream_);
  (void)pinned_free(bytes_);
}

}  // namespace flhal
