// src/memory/arena.h: what a pool keeps for one stream: memory that is free for this stream at once, for others later.
#pragma once

#include "core/stream.h"
#include "memory/free_index.h"
#include "memory/size_class.h"

namespace flhal {

class BlockPool;

// Never deleted, like the Stream it belongs to. The pool's lock guards all but the constants.
struct Arena {
  BlockPool* pool = nullptr;
  Stream* stream = nullptr;              // nullptr: the pool's own arena, whose spans are free for all
  uint32_t cache_slot = 0;               // below kCacheSlots: where threads look for their cache of it
  FreeIndex free;                        // spans freed on this stream, not yet known to be reached
  Span* partial[kClasses] = {};          // small spans with free blocks

  // Something freed here may still be in use by queued work. Without queues and with an idle worker nothing can.
  bool ordered() const { return stream != nullptr && !stream->worker_idle(); }
};

}  // namespace flhal
