// src/core/service.cc: the loop of the service thread; see service.h.
//
// Points are asked for by polling: the vendor ABI has no callback at the end of work, and a thread that blocks in one
// maker's wait could not serve the others. The time between two looks grows with the time waited (an eighth of it, 20 us to
// 1 ms), so that a signal is late by little of what the chip waited anyway.
#include "core/service.h"

#include <pthread.h>
#include <signal.h>
#include <uv.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/event.h"
#include "core/exit.h"
#include "core/fork_guard.h"
#include "core/log.h"

namespace flhal {

namespace {

struct Watch {
  Point point;
  void (*then)(void*);
  void* context;
  uint64_t since_ns;
};

struct Service {
  std::mutex mutex;                         // guards `fresh` and `started`
  bool started = false, broken = false;
  std::vector<Watch> fresh;
  std::vector<Watch> watches;               // the thread's own
  uint64_t period_ms = 0;                   // under mutex
  void (*look_often)() = nullptr;
  std::atomic<bool> ending{false}, ended{false};
  uv_loop_t loop;
  uv_async_t wake;
  uv_idle_t look;
  uv_timer_t often;
};
// Never destroyed: the thread may look at it until the process is gone.
Service& service() {
  static Service& s = *new Service;
  return s;
}

void look_at_points(uv_idle_t* idle) {
  auto& s = *static_cast<Service*>(idle->data);
  if (s.ending.load(std::memory_order_acquire)) {
    uv_stop(&s.loop);
    return;
  }
  const uint64_t now = now_ns();
  uint64_t shortest = 1000000;
  std::vector<Watch> due;
  std::erase_if(s.watches, [&](const Watch& watch) {
    if (watch.point.stream->reached(watch.point.sequence)) {
      due.push_back(watch);
      return true;
    }
    shortest = std::min(shortest, (now - watch.since_ns) / 8);
    return false;
  });
  for (Watch& watch : due) watch.then(watch.context);
  if (!due.empty()) retire_poll();
  if (s.watches.empty()) {
    uv_idle_stop(idle);
  } else if (due.empty()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<uint64_t>(shortest, 20000)));
  }
}

void take_fresh(uv_async_t* wake) {
  auto& s = *static_cast<Service*>(wake->data);
  if (s.ending.load(std::memory_order_acquire)) {
    uv_stop(&s.loop);
    return;
  }
  std::lock_guard lock(s.mutex);
  s.watches.insert(s.watches.end(), s.fresh.begin(), s.fresh.end());
  s.fresh.clear();
  if (s.look_often && !uv_is_active(reinterpret_cast<uv_handle_t*>(&s.often)))
    uv_timer_start(&s.often, [](uv_timer_t* t) { static_cast<Service*>(t->data)->look_often(); }, s.period_ms, s.period_ms);
  if (!s.watches.empty()) uv_idle_start(&s.look, look_at_points);
}

void run_loop() {
  Service& s = service();
  pthread_setname_np(pthread_self(), "flhal-service");
  uv_run(&s.loop, UV_RUN_DEFAULT);          // ends with the process only
  s.ended.store(true, std::memory_order_release);
}

// The thread must not call a plugin while exit() tears libraries down.
void end_at_exit() {
  Service& s = service();
  if (forked()) return;
  s.ending.store(true, std::memory_order_release);
  uv_async_send(&s.wake);
  for (int i = 0; i < 1000 && !s.ended.load(std::memory_order_acquire); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool start_locked(Service& s) {
  if (s.started) return true;
  if (s.broken) return false;
  s.broken = true;                          // until all of it went well
  if (uv_loop_init(&s.loop) != 0) return false;
  if (uv_async_init(&s.loop, &s.wake, take_fresh) != 0 || uv_idle_init(&s.loop, &s.look) != 0 ||
      uv_timer_init(&s.loop, &s.often) != 0)
    return false;
  s.wake.data = s.look.data = s.often.data = &s;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(run_loop).detach();
    s.started = true;
  } catch (const std::exception& e) {
    log(kLogWarn, "the service thread could not be started ({}); the host waits itself", e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (s.started) {
    std::atexit(end_at_exit);
    rest_before_exit(true);                 // queues may wait for signals that only this thread gives
  }
  return s.started;
}

}  // namespace

bool service_running() {
  std::lock_guard lock(service().mutex);
  return service().started;
}

void service_every(uint64_t period_ms, void (*look)()) {
  Service& s = service();
  {
    std::lock_guard lock(s.mutex);
    if (forked() || !start_locked(s)) return;
    s.period_ms = period_ms;
    s.look_often = look;
  }
  uv_async_send(&s.wake);
}

void service_when_reached(Point point, void (*then)(void*), void* context) {
  Service& s = service();
  bool watched = false;
  if (!forked()) {
    std::lock_guard lock(s.mutex);
    if (!s.ending.load(std::memory_order_acquire) && start_locked(s)) {
      s.fresh.push_back({point, then, context, now_ns()});
      watched = true;
    }
  }
  if (watched) {
    uv_async_send(&s.wake);
    return;
  }
  (void)point.stream->wait_for(point.sequence);
  then(context);
}

}  // namespace flhal
