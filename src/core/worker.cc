// src/core/worker.cc: the worker's loop, its waits, and how it ends; see worker.h.
//
// Exit: a process may end with calls queued. A handler of exit() then drops what has not begun and gives the running call a
// moment; without it the call would run on while static destructors tear down the libraries below it.
#include "core/worker.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/caller_threads.h"
#include "core/exit.h"
#include "core/fork_guard.h"

namespace flhal {

namespace {

thread_local Worker* t_worker = nullptr;
std::atomic<bool> g_ending{false};
std::atomic<uint64_t> g_threads{0};

std::mutex& g_workers_mutex = *new std::mutex;
std::vector<Worker*>& g_workers = *new std::vector<Worker*>;   // of all streams; never destroyed

// A short look before sleeping: the next call mostly follows at once, and waking a thread costs its caller microseconds.
// A single core has nobody to spin for.
int spins() {
  static const int n = std::thread::hardware_concurrency() > 1 ? 2000 : 0;
  return n;
}
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

Worker* Worker::current() { return t_worker; }
uint64_t Worker::running_threads() { return g_threads.load(std::memory_order_acquire); }
bool Worker::ending() const { return g_ending.load(std::memory_order_acquire); }

Worker::Blocked::Blocked() {
  if (t_worker) t_worker->blocked_.store(true, std::memory_order_release);
}
Worker::Blocked::~Blocked() {
  if (t_worker) t_worker->blocked_.store(false, std::memory_order_release);
}

Worker::Worker(Stream* outer) : outer_(outer), inner_(new Stream(outer->device, outer->id, nullptr)) {
  // Another slot than the stream's own, so that one thread's caches of both do not drive each other out.
  inner_->cache_slot.store((outer->cache_slot.load(std::memory_order_relaxed) + kCacheSlots / 2) % kCacheSlots,
                           std::memory_order_relaxed);
  std::lock_guard lock(g_workers_mutex);
  g_workers.push_back(this);
}

// ---- the caller's side --------------------------------------------------------------------------------------------

bool Worker::push(std::unique_ptr<Work>& work) {
  work->threads_ = caller_threads();
  std::unique_lock lock(mutex_);
  while (open_ && queue_.size() + n_taken_ >= kQueuedMax && !ending()) {
    ++waiting_for_space_;
    space_.wait(lock);
    --waiting_for_space_;
  }
  if (!open_ || ending()) return false;
  if (!thread_.joinable()) start_locked();
  // Points of before, also of calls that ran in their callers, are reached.
  if (outer_->worker_idle()) outer_->completed_up_to(outer_->sequence_.load(std::memory_order_acquire));
  // Outstanding first: who sees the number sees that it is not reached.
  outer_->outstanding_.fetch_add(1, std::memory_order_seq_cst);
  work->number_ = outer_->sequence_.fetch_add(1, std::memory_order_acq_rel) + 1;
  queue_.push_back(std::move(work));
  n_queued_.store(queue_.size(), std::memory_order_release);
  bool wake = sleeping_;
  sleeping_ = false;
  lock.unlock();
  if (wake) arrived_.notify_one();
  return true;
}

void Worker::wait(uint64_t sequence) {
  if (t_worker == this) return;             // a call cannot wait for itself; see finish_pending
  Blocked blocked;
  for (int i = spins() / 8; i > 0; --i) {
    if (outer_->known_reached(sequence)) return;
    relax();
  }
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  done_.wait(lock, [&] { return outer_->known_reached(sequence); });
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

void Worker::open() {
  std::lock_guard lock(mutex_);
  open_ = true;
}

void Worker::close() {
  {
    std::lock_guard lock(mutex_);
    open_ = false;
  }
  space_.notify_all();
  wait(UINT64_MAX);                         // that far is reached only by having nothing left
}

void Worker::end() {
  close();
  std::thread thread;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    thread.swap(thread_);
  }
  arrived_.notify_one();
  if (thread.joinable()) {
    if (thread.get_id() == std::this_thread::get_id()) thread.detach();
    else thread.join();
  }
  std::lock_guard lock(mutex_);
  stop_ = false;
}

Status Stream::queue(std::unique_ptr<Work> work) {
  const char* what = work->what;
  for (;;) {
    if (!usable()) return unusable_failure(what);
    if (worker_->push(work)) return FLHAL_OK;
    // The level is being lowered: what was queued before goes first, and until that is over nobody runs anything.
    worker_->wait(UINT64_MAX);
    if (queues_calls()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      continue;
    }
    Status done = work->run(this);
    if (done.code() != kQueueInstead) return done;   // else it was raised again
  }
}

bool Stream::queue_always(std::unique_ptr<Work>& work) {
  return !asynchronous && queues_calls() && worker_->push(work);
}

bool Stream::worker_moves() const {
  return !asynchronous && !worker_idle() && worker_ != Worker::current() && !worker_->blocked();
}

void Stream::follow_level() {
  if (asynchronous) return;
  bool on = config().async_level.load(std::memory_order_acquire) == 2 && !g_ending.load(std::memory_order_acquire);
  if (on == queues_calls()) return;
  if (on) {
    if (worker_ == nullptr) worker_ = new Worker(this);
    worker_->open();
    attention_.fetch_or(kQueuesCalls, std::memory_order_release);
  } else {
    worker_->end();                         // only then may calls run in their callers
    attention_.fetch_and(~kQueuesCalls, std::memory_order_release);
  }
}

void Stream::end_worker() {
  if (worker_ == nullptr) return;
  worker_->end();
  attention_.fetch_and(~kQueuesCalls, std::memory_order_release);
}

// ---- the worker's side --------------------------------------------------------------------------------------------

void Worker::start_locked() {
  find_openmp();
  register_at_exit();
  sigset_t all, before;                     // the program's signal handlers never run on a worker
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::loop() {
  t_worker = this;
  g_threads.fetch_add(1, std::memory_order_acq_rel);
  pthread_setname_np(pthread_self(), fmt::format("flhal-worker{}", outer_->id % 1000).c_str());
  std::vector<std::unique_ptr<Work>> batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      if (stop_) break;
      lock.unlock();
      for (int i = spins(); i > 0 && n_queued_.load(std::memory_order_acquire) == 0; --i) relax();
      lock.lock();
      if (queue_.empty() && !stop_) {
        sleeping_ = true;
        arrived_.wait(lock, [&] { return !queue_.empty() || stop_; });
        sleeping_ = false;
      }
      continue;
    }
    batch.swap(queue_);
    n_queued_.store(0, std::memory_order_release);
    n_taken_ = batch.size();
    lock.unlock();
    for (auto& work : batch) {
      uint64_t number = work->number_;
      if (!ending()) {
        run_one(*work);
        work.reset();                       // what it holds goes before it counts as finished
      } else {
        abandoned_.push_back(std::move(work));   // the process ends: nothing below can be trusted any more
      }
      finished(number);
    }
    batch.clear();
    lock.lock();
    n_taken_ = 0;
    if (waiting_for_space_) space_.notify_all();
  }
  lock.unlock();
  g_threads.fetch_sub(1, std::memory_order_acq_rel);
}

void Worker::run_one(Work& work) {
  if (!outer_->usable() && !work.always()) return;
  take_caller_threads(work.threads_);
  inner_->id = outer_->id;
  inner_->sequence_.store(work.number_ - 1, std::memory_order_relaxed);   // texts name the caller's call
  Status done;
  try {
    done = work.run(inner_);
  } catch (const std::bad_alloc&) {
    done = fail(FLHAL_E_HOST_MEMORY, "no host memory");
  } catch (const std::exception& e) {
    done = fail(FLHAL_E_INTERNAL, "{}", e.what());
  }
  if (__builtin_expect(!done.ok(), 0)) late_failure(work, done);
}

void Worker::late_failure(const Work& work, Status done) {
  inner_->clear_error();
  if (outer_->device->lost()) return;       // the device tells its own reason
  flhal_status code = done.code();
  std::string where = fmt::format("{}, call {} on stream {} of {}: ", work.what, work.number_, outer_->id, outer_->device->name);
  std::string text = code > 0 ? fmt::format("answered {}", code) : last_error_text();
  if (text.compare(0, where.size(), where) != 0) text.insert(0, where);
  // A refusal that only running could find is a failure of the stream now: later calls may rely on what it should have written.
  bool keeps_code = code == FLHAL_E_INTERNAL || code == FLHAL_E_OUT_OF_MEMORY || code == FLHAL_E_HOST_MEMORY ||
                    code <= FLHAL_E_VENDOR_LAST;
  outer_->poison(keeps_code ? code : FLHAL_E_OP_FAILED,
                 text + " (it ran behind its caller, async_level 2; at 0 and 1 the call itself reports this)", work.number_);
}

void Worker::finished(uint64_t number) {
  outer_->completed_up_to(number);
  outer_->outstanding_.fetch_sub(1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard lock(mutex_);
  done_.notify_all();
}

// ---- the end of the process ---------------------------------------------------------------------------------------

void Worker::at_exit() {
  if (forked() || g_ending.exchange(true)) return;
  std::vector<Worker*> workers;
  {
    std::lock_guard lock(g_workers_mutex);
    workers = g_workers;
  }
  constexpr auto kLongest = std::chrono::seconds(5);
  auto until = std::chrono::steady_clock::now() + kLongest;
  for (Worker* worker : workers) {
    worker->space_.notify_all();
    // One that waits for another stream touches nothing, and that stream may never move again.
    while (!worker->outer_->worker_idle() && !worker->blocked() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    worker->outer_->attention_.fetch_and(~Stream::kQueuesCalls, std::memory_order_release);
  }
}

static std::atomic<uint64_t> g_libraries_at_registration{0};

void Worker::register_at_exit() {
  uint64_t now = libraries_loaded(), before = g_libraries_at_registration.exchange(now);
  if (now != before) std::atexit(at_exit);
}

void workers_outlive_new_libraries() {
  if (g_threads.load(std::memory_order_acquire) != 0) Worker::register_at_exit();
}

}  // namespace flhal
