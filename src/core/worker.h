// src/core/worker.h: async level 2: one thread per stream of a plugin that has no queues of its own.
//
// Idea: the worker runs whole API calls, not slot calls. The caller validates and plans, so refusals are immediate; then it
// queues a copy of the call that owns what it refers to. The worker runs that copy on its INNER stream, an ordinary stream
// without a worker, by the very code of level 1: nested submissions, temporaries and late refusals need nothing special.
// The inner stream has memory of its own: what a call takes and gives back while it runs is in the order of running, what
// callers allocate and free is in the order of queueing, and one free list for both would hand a block to an earlier call.
// Threads: `mutex_` guards the queue; nothing is called under it. Waiters are told only when there are any.
// Life: never deleted, like the Stream. The thread starts with the first call, blocks all signals, and ends with end().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/stream.h"

namespace flhal {

// One queued call. Owns everything it refers to, but for device memory: freeing that is in stream order.
class Work {
 public:
  explicit Work(const char* what) : what(what) {}
  virtual ~Work() = default;
  // On the worker `stream` is the inner stream; it is the stream itself when the level was lowered meanwhile.
  virtual Status run(Stream* stream) = 0;
  // True: runs also after a failure of the stream, which skips everything else.
  virtual bool always() const { return false; }

  const char* const what;                   // static text, for error texts

 private:
  friend class Worker;
  uint64_t number_ = 0;                     // of the stream's calls
  int threads_ = 0;                         // the caller's OpenMP threads, 0: unknown
};

// A call that is a closure over values: work_of("copy", [=](Stream* stream) -> Status {...}).
template <typename Body>
std::unique_ptr<Work> work_of(const char* what, Body body) {
  struct Closure final : Work {
    Closure(const char* w, Body&& b) : Work(w), body(std::move(b)) {}
    Status run(Stream* stream) override { return body(stream); }
    Body body;
  };
  return std::make_unique<Closure>(what, std::move(body));
}

class Worker {
 public:
  explicit Worker(Stream* outer);

  // Takes `work` and gives true; false while the worker is closed (level lowered, device closing, process ending).
  // Waits when kQueuedMax calls are waiting: the caller cannot run ahead for ever.
  bool push(std::unique_ptr<Work>& work);
  void wait(uint64_t sequence);             // until the stream has reached it
  void open();
  void close();                             // push refuses from now on; waits until everything has run
  void end();                               // close, and join the thread

  // While a call waits for another stream. Who must not wait for a worker that waits (the memory ladder) can see it.
  class Blocked {
   public:
    Blocked();
    ~Blocked();
    Blocked(const Blocked&) = delete;
  };
  bool blocked() const { return blocked_.load(std::memory_order_acquire); }

  Stream* inner() const { return inner_; }
  static Worker* current();                 // of this thread; nullptr on every other thread
  static uint64_t running_threads();        // how many worker threads the process has

 private:
  static constexpr size_t kQueuedMax = 1024;

  void start_locked();
  void loop();
  void run_one(Work& work);
  void late_failure(const Work& work, Status done);
  void finished(uint64_t number);
  bool ending() const;
  static void at_exit();
  static void register_at_exit();
  friend void workers_outlive_new_libraries();

  Stream* const outer_;
  Stream* const inner_;
  std::mutex mutex_;
  std::condition_variable arrived_, space_, done_;
  std::vector<std::unique_ptr<Work>> queue_;
  std::atomic<size_t> n_queued_{0};         // queue_.size(), for a look without the lock
  std::vector<std::unique_ptr<Work>> abandoned_;   // of the worker alone; what had not begun when the process ended
  size_t n_taken_ = 0;                      // of those the thread has taken out at once and not begun
  bool sleeping_ = false;
  bool open_ = false, stop_ = false;
  uint32_t waiting_for_space_ = 0;
  std::atomic<uint32_t> waiters_{0};
  std::atomic<bool> blocked_{false};
  std::thread thread_;
};

// Libraries that were loaded since the exit handler was registered would be torn down before it: registers it again. Called
// when something new of a plugin was made (a plan), which is when plugins load what they need.
void workers_outlive_new_libraries();

}  // namespace flhal
