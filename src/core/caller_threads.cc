// src/core/caller_threads.cc: the two functions of libgomp, where the process has it.
#include "core/caller_threads.h"

#include <dlfcn.h>

#include <atomic>

namespace flhal {

static std::atomic<int (*)()> g_get{nullptr};
static std::atomic<void (*)(int)> g_set{nullptr};

void find_openmp() {
  if (g_get.load(std::memory_order_acquire)) return;
  void* library = dlopen("libgomp.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return;
  auto get = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
  auto set = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  if (get == nullptr || set == nullptr) return;
  g_set.store(set, std::memory_order_release);
  g_get.store(get, std::memory_order_release);
}

int caller_threads() {
  auto get = g_get.load(std::memory_order_acquire);
  return get ? get() : 0;
}

void take_caller_threads(int threads) {
  static thread_local int t_now = 0;
  if (threads == 0 || threads == t_now) return;
  t_now = threads;
  g_set.load(std::memory_order_acquire)(threads);
}

}  // namespace flhal
