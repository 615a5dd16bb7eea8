// src/core/exit.cc: waits, when the process ends, for what the queues of plugins still run.
//
// Idea: one handler of exit(). It asks every queue whether it rests, and never blocks in a plugin. A queue that does not come to
// rest (a hung chip) is not waited for for ever: then the process ends on the spot, with its exit status and flushed files, but
// without the destructors of libraries under which work still runs.
// Threads: the handler runs in the thread that calls exit(); others may still be submitting.
#include "core/exit.h"

#include <link.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "core/event.h"
#include "core/fork_guard.h"
#include "core/log.h"

namespace flhal {

uint64_t libraries_loaded() {
  uint64_t n = 0;
  dl_iterate_phdr([](dl_phdr_info* info, size_t, void* out) {
    *static_cast<uint64_t*>(out) = info->dlpi_adds;
    return 1;
  }, &n);
  return n;
}

namespace {

constexpr auto kLongest = std::chrono::seconds(10);
constexpr auto kLongestWhileFed = std::chrono::seconds(1);   // another thread goes on submitting: that need not end at all

void rest(int exit_status, void*) {
  using Clock = std::chrono::steady_clock;
  if (forked()) return;
  const auto began = Clock::now();
  uint64_t submitted_before, submitted;
  if (first_busy_stream(&submitted_before) == nullptr) return;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    Stream* busy = first_busy_stream(&submitted);
    if (busy == nullptr) return;
    const auto limit = submitted == submitted_before ? kLongest : kLongestWhileFed;
    if (Clock::now() - began < limit) continue;
    log(kLogWarn, "stream {} of {} has not finished in the {} s since exit() was called{}; the process ends without the driver's own end",
        busy->id, busy->device->name, limit.count(), submitted == submitted_before ? "" : ", and another thread goes on submitting");
    std::fflush(nullptr);
    _exit(exit_status);
  }
}

}  // namespace

void rest_before_exit(bool first) {
  static std::atomic<uint64_t> registered{0};
  const uint64_t now = libraries_loaded();
  if (registered.exchange(now) != now || first) on_exit(rest, nullptr);
}

}  // namespace flhal
