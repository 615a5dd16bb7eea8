// src/dispatch/thread_state.h: what each thread keeps: its table of plans, its counts, its policies, its last reason.
//
// Idea: one thread-local pointer (initial-exec) for the whole layer; everything behind it is made at the first call and
// given back when the thread ends.
// Threads: slots, scopes and decline belong to the thread. counts are written by the thread and read by reports.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "core/config.h"
#include "dispatch/plan.h"

namespace flhal {

inline constexpr uint32_t kSlots = 512;          // power of two
inline constexpr uint32_t kCountRows = 1024;     // rows beyond are counted in the shared row

struct PlanSlot {
  uint64_t hash = 0;
  Plan* plan = nullptr;                          // holds one reference
};

struct PolicyScope {
  FallbackPolicy policy;
  std::string op;                                // "" = every op
};

struct CounterRow;

// A fallback that the thread met: the caller's texts by address, to find the place, and the row they name, to compare.
struct MetFallback {
  const char *op = nullptr, *reason = nullptr;
  const CounterRow* names = nullptr;
  uint32_t row = 0;
};
inline constexpr size_t kMetFallbacks = 64;      // power of two

struct ThreadState {
  std::array<PlanSlot, kSlots> slots;
  std::array<std::atomic<uint64_t>, kCountRows> counts{};
  std::array<MetFallback, kMetFallbacks> met_fallbacks;
  const char* decline = "";
  uint32_t depth = 0;                            // of calls inside calls: composites, temporaries
  std::vector<PolicyScope> scopes;

  void count(uint32_t row) {
    if (__builtin_expect(row < kCountRows, 1)) {
      auto& c = counts[row];
      c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      count_shared(row);
    }
  }
  void keep(uint32_t at, Plan* plan) {           // takes a new reference
    PlanSlot& slot = slots[at];
    plan->retain();
    Plan* old = slot.plan;
    slot = {plan->hash, plan};
    if (old) old->release();
  }

 private:
  static void count_shared(uint32_t row);
};
inline uint32_t class_slot(uint64_t hash) { return static_cast<uint32_t>(hash >> 55); }
// Never the slot of the class's own entry: the two would drive each other out.
inline uint32_t exact_slot(uint64_t hash, uint64_t class_hash) {
  uint32_t at = class_slot(hash);
  return at == class_slot(class_hash) ? at ^ 1 : at;
}
static_assert(kSlots == 1u << (64 - 55));

extern thread_local constinit ThreadState* t_dispatch;   // constinit: no wrapper call to look whether it was made
ThreadState* make_thread_state();                // registers the thread; never fails but by bad_alloc
inline ThreadState& thread_state() {
  ThreadState* t = t_dispatch;
  return __builtin_expect(t != nullptr, 1) ? *t : *make_thread_state();
}

// Visits every live thread's state under the registry's lock, and the sums of ended threads. For reports.
uint64_t count_of_all_threads(uint32_t row);

}  // namespace flhal
