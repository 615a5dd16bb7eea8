// stream.cc: one worker thread per stream, and everything that makes work late, wrong or lost.
//
// Idea: a stream is a queue of closures. Within a stream they run in order, whatever the script says; between streams a
// seeded delay per piece of work (reorder) or the gate (hold) changes who is first.
// Failures: the first one is kept and told by stream_query until stream_synchronize has returned it. Work behind a failed
// piece still runs: only that piece failed, the chip is well.
#include <pthread.h>
#include <signal.h>

#include <utility>

#include "mock.h"

namespace mock {
namespace {

std::atomic<uint64_t> g_next_stream{1};

// splitmix64: a good number from any seed, no state to share between streams.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

void scripted_delay(const flhal_p_stream* stream, uint64_t sequence) {
  const Script& s = script();
  uint64_t wait_us = s.delay_ms * 1000ull;
  if (s.reorder_seed != 0 && stream != nullptr) {
    uint64_t range_us = s.delay_ms == 0 ? 2000 : s.delay_ms * 1000ull;
    wait_us = mix(s.reorder_seed ^ (stream->number << 32) ^ sequence) % (range_us + 1);
  }
  if (wait_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
}

void note(flhal_p_stream* stream, Outcome outcome) {   // under stream->mutex
  if (outcome.code != FLHAL_OK && stream->first_failure.code == FLHAL_OK) stream->first_failure = std::move(outcome);
}

void run_worker(flhal_p_stream* stream) {
  while (true) {
    Work work;
    {
      std::unique_lock lock(stream->mutex);
      stream->changed.wait(lock, [&] { return stream->stop || !stream->queue.empty(); });
      if (stream->queue.empty()) return;
      work = std::move(stream->queue.front());
      stream->queue.pop_front();
    }
    gate_wait(stream);
    Outcome outcome = work();
    work = nullptr;   // what it holds goes before the work counts as finished
    {
      std::lock_guard lock(stream->mutex);
      ++stream->completed;
      note(stream, std::move(outcome));
      stream->device->counts().queued.fetch_sub(1, std::memory_order_relaxed);
      stream->changed.notify_all();
    }
  }
}

// The worker must never run the program's signal handlers.
std::thread start_worker(flhal_p_stream* stream) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread worker(run_worker, stream);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return worker;
}

bool lose_now(flhal_p_device* device) {
  const Script& s = script();
  uint64_t n = s.submissions[device->chip].fetch_add(1, std::memory_order_relaxed) + 1;
  return s.lose_after != 0 && n == s.lose_after + 1 && (s.lose_device == ~0u || s.lose_device == device->chip);
}

}  // namespace

void enqueue(flhal_p_stream* stream, Work work) {
  if (stream->submitting.exchange(true)) misuse(stream->device->chip, "two submissions on one stream at once");
  {
    std::lock_guard lock(stream->mutex);
    stream->queue.push_back(std::move(work));
    ++stream->submitted;
    stream->device->counts().queued.fetch_add(1, std::memory_order_relaxed);
    stream->changed.notify_all();
  }
  stream->submitting.store(false);
}

flhal_status submit(flhal_p_device* device, flhal_p_stream* stream, Slot slot, std::vector<flhal_p_memory*> uses, Work work) {
  if (stream != nullptr && stream->device != device) {
    misuse(device->chip, "a stream of another device");
    return fail(FLHAL_E_INVALID, std::string("mock: ") + slot_name(slot) + ": the stream belongs to another device");
  }
  if (lose_now(device)) device->lost = true;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, std::string("mock: ") + slot_name(slot) + ": the device is lost");
  for (flhal_p_memory* m : uses) {
    if (m->device != device) misuse(device->chip, "a slab of another device");
    m->in_use.fetch_add(1);
  }
  uint64_t sequence = stream != nullptr ? stream->submitted : 0;
  Work whole = [=, uses = std::move(uses), work = std::move(work)]() -> Outcome {
    scripted_delay(stream, sequence);
    Outcome outcome;
    if (device->lost) {
      outcome = {FLHAL_E_DEVICE_LOST, std::string("mock: ") + slot_name(slot) + ": the device was lost before it ran"};
    } else if (flhal_status code = scripted_failure(slot, true); code != FLHAL_OK) {
      outcome = {code, std::string("mock: the script made the work of ") + slot_name(slot) + " fail"};
      if (code == FLHAL_E_DEVICE_LOST) device->lost = true;
    } else {
      outcome = work();
    }
    for (flhal_p_memory* m : uses) m->in_use.fetch_sub(1);
    return outcome;
  };
  if (stream == nullptr) {
    Outcome outcome = whole();
    return outcome.code == FLHAL_OK ? FLHAL_OK : fail(outcome.code, outcome.text);
  }
  enqueue(stream, std::move(whole));
  return FLHAL_OK;
}

namespace slots {

flhal_status stream_create(flhal_p_device* device, int32_t priority, uint32_t, flhal_p_stream** out) {
  if (flhal_status s = slot_begin(Slot::stream_create, device->chip); s != FLHAL_OK) return s;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: stream_create: the device is lost");
  auto* stream = new flhal_p_stream();
  stream->device = device;
  stream->priority = priority;
  stream->number = g_next_stream.fetch_add(1);
  stream->worker = start_worker(stream);
  device->counts().live_streams.fetch_add(1);
  *out = stream;
  return FLHAL_OK;
}

void stream_destroy(flhal_p_stream* stream) {
  {
    std::lock_guard lock(stream->mutex);
    if (stream->completed != stream->submitted) misuse(stream->device->chip, "stream_destroy with unfinished work");
    stream->stop = true;
    stream->draining = true;
    stream->changed.notify_all();
  }
  gate_wake();
  stream->worker.join();
  stream->device->counts().live_streams.fetch_sub(1);
  delete stream;
}

flhal_status stream_query(flhal_p_stream* stream) {
  if (flhal_status s = slot_begin(Slot::stream_query, stream->device->chip); s != FLHAL_OK) return s;
  if (stream->device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: stream_query: the device is lost");
  std::lock_guard lock(stream->mutex);
  if (stream->first_failure.code != FLHAL_OK) return fail(stream->first_failure.code, stream->first_failure.text);
  return stream->completed == stream->submitted ? FLHAL_OK : FLHAL_NOT_READY;
}

flhal_status stream_synchronize(flhal_p_stream* stream) {
  if (flhal_status s = slot_begin(Slot::stream_synchronize, stream->device->chip); s != FLHAL_OK) return s;
  std::unique_lock lock(stream->mutex);
  uint64_t until = stream->submitted;   // later submissions of other threads are not waited for
  stream->changed.wait(lock, [&] { return stream->completed >= until; });
  Outcome told = std::exchange(stream->first_failure, Outcome());
  lock.unlock();
  if (stream->device->lost) return fail(FLHAL_E_DEVICE_LOST, told.text.empty() ? "mock: the device is lost" : told.text);
  return told.code == FLHAL_OK ? FLHAL_OK : fail(told.code, told.text);
}

}  // namespace slots
}  // namespace mock
