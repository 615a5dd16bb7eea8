// reference_plugins/host/threads.h: the one way this plugin uses more than one thread.
//
// Idea: OpenMP, because torch and oneDNN use it too: all three then share the pool of the one libgomp.so.1 in the process
// (the dynamic linker keeps one library per soname), obey torch.set_num_threads, and never oversubscribe.
// A loop that is not worth it never enters a parallel region: entering costs 2 us when the pool is awake and up to 50 us
// when it sleeps.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace flhal::host {

// How many threads `parts` pieces of work get. Inside someone's parallel region: one, the caller.
inline uint64_t threads_for(uint64_t parts) {
  if (parts <= 1) return 1;
  const int most = omp_get_max_threads();
  if (most <= 1 || omp_in_parallel()) return 1;
  return std::min<uint64_t>(parts, static_cast<uint64_t>(most));
}

// Calls body(first, count) for ranges that cover 0 .. parts-1 once, one range per thread. body must not throw.
template <class Body>
inline void for_ranges(uint64_t parts, Body&& body) {
  const uint64_t threads = threads_for(parts);
  if (threads <= 1) {
    body(uint64_t{0}, parts);
    return;
  }
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    // The team may be smaller than asked for (OMP_THREAD_LIMIT), so divide by what is there.
    const uint64_t team = static_cast<uint64_t>(omp_get_num_threads());
    const uint64_t self = static_cast<uint64_t>(omp_get_thread_num());
    const uint64_t base = parts / team, longer = parts % team;
    const uint64_t count = base + (self < longer ? 1 : 0);
    if (count) body(self * base + std::min(self, longer), count);
  }
}

}  // namespace flhal::host
