// src/dispatch/thread_state.cc: making, registering and giving back thread states.
#include "dispatch/thread_state.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "core/device.h"
#include "core/fork_guard.h"
#include "dispatch/dispatch.h"
#include "dispatch/report.h"

namespace flhal {

void give_back(ThreadState* t);

namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_set<ThreadState*> live;
  std::unordered_map<uint32_t, uint64_t> ended;   // sums of threads that are gone, and of rows beyond kCountRows
  pthread_key_t key;
};

void thread_ended(void* state) {
  if (forked()) return;   // a forked child frees silently: its plans belong to the parent's plugins
  give_back(static_cast<ThreadState*>(state));
}

Registry& registry() {
  static Registry& r = *[] {   // never destroyed: threads may end after main
    auto* made = new Registry;
    pthread_key_create(&made->key, thread_ended);
    return made;
  }();
  return r;
}

}  // namespace

thread_local constinit ThreadState* t_dispatch = nullptr;

void give_back(ThreadState* t) {
  Registry& r = registry();
  {
    std::lock_guard lock(r.mutex);
    r.live.erase(t);
    for (uint32_t row = 0; row < kCountRows; ++row) {
      uint64_t n = t->counts[row].load(std::memory_order_relaxed);
      if (n) r.ended[row] += n;
    }
  }
  for (PlanSlot& slot : t->slots)
    if (slot.plan) slot.plan->release();
  t_dispatch = nullptr;
  delete t;
}

ThreadState* make_thread_state() {
  static const bool hooked = [] {
    on_device_close(dispatch_forget_device);
    std::atexit(log_summary);
    return true;
  }();
  (void)hooked;
  Registry& r = registry();
  auto* t = new ThreadState;
  {
    std::lock_guard lock(r.mutex);
    r.live.insert(t);
  }
  pthread_setspecific(r.key, t);
  t_dispatch = t;
  return t;
}

void ThreadState::count_shared(uint32_t row) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  ++r.ended[row];
}

uint64_t count_of_all_threads(uint32_t row) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto ended = r.ended.find(row);
  uint64_t sum = ended == r.ended.end() ? 0 : ended->second;
  if (row < kCountRows)
    for (ThreadState* t : r.live) sum += t->counts[row].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace flhal
