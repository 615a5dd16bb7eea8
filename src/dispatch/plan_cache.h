// src/dispatch/plan_cache.h: finding the plan of a call.
//
// Idea: each thread has a direct-mapped table (thread_state.h); behind it lie shards that own the plans. A call is looked
// up by its class key. Where a plan depends on more (exact sizes, strides or alignment), the class entry is a redirect and
// the plan lies under the exact key, of which each shard keeps a bounded number.
// Threads: a shard's lock is never held while a plan is made: the entry says "in the making", others wait for it.
// A plan whose stamp (settings version, device generation) is old is made again; refusals are plans too.
#pragma once

#include "dispatch/plan.h"
#include "dispatch/thread_state.h"

namespace flhal {

// The plan for the call; the reference belongs to the thread's table and lasts until the thread's next lookup of another
// key. Fails only where the call itself is wrong (attributes).
Result<Plan*> plan_for_slowly(PreparedCall& p, ThreadState& thread);

inline bool in_table(const PlanSlot& slot, uint64_t hash, const uint64_t* words, uint32_t n_words, uint64_t stamp) {
  return slot.hash == hash && slot.plan && slot.plan->stamp == stamp && matches(*slot.plan, words, n_words);
}

inline Result<Plan*> plan_for(PreparedCall& p, ThreadState& thread) {
  const PlanSlot& slot = thread.slots[class_slot(p.hash)];
  if (__builtin_expect(in_table(slot, p.hash, p.words, p.n_words, stamp_of(*p.device)) && !slot.plan->redirect, 1))
    return slot.plan;
  return plan_for_slowly(p, thread);
}

// The plan's route answered DECLINED while running: makes and keeps another one without that route.
Result<Plan*> replace_withdrawn(PreparedCall& p, ThreadState& thread, Plan* plan);

void drop_plans(Device* device);            // closing or resetting: everything planned for the device
uint64_t plan_count();                      // in all shards; for tests and reports
inline constexpr uint32_t kExactPlansPerShard = 128;

}  // namespace flhal
