// stream.cc: queues of work. driver: its own queues; then each slot here is one call of it.
//
// Idea: a stream is a list of work and one thread that does it in order, so streams run beside each other. A point in it is an
// event (event.cc).
// Threads: plugin->mutex guards the lists and counts; it is not held while work runs.
#include <pthread.h>
#include <signal.h>

#include <string>
#include <utility>

#include "chip.h"

namespace chip {

static void work_through(flhal_p_stream* stream) {
  flhal_p_plugin* plugin = stream->device->plugin;
  std::unique_lock lock(plugin->mutex);
  while (true) {
    plugin->changed.wait(lock, [&] { return stream->stop || !stream->queue.empty(); });
    if (stream->queue.empty()) return;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    lock.unlock();
    flhal_status status = work();
    work = nullptr;                        // what it holds goes before it counts as finished
    lock.lock();
    if (status != FLHAL_OK && stream->failure == FLHAL_OK) stream->failure = status;
    ++stream->completed;
    plugin->changed.notify_all();
  }
}

flhal_status submit(flhal_p_stream* stream, Work work) {
  if (stream == nullptr) return work();
  flhal_p_plugin* plugin = stream->device->plugin;
  std::lock_guard lock(plugin->mutex);
  stream->queue.push_back(std::move(work));
  ++stream->submitted;
  plugin->changed.notify_all();
  return FLHAL_OK;
}

// Slot 18. The worker blocks every signal: the program's handlers are for the program's threads.
flhal_status stream_create(flhal_p_device* device, int32_t /*priority: a hint*/, uint32_t, flhal_p_stream** out) {
  auto stream = std::make_unique<flhal_p_stream>(flhal_p_stream{device});
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    stream->worker = std::thread(work_through, stream.get());
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw flhal::Error(FLHAL_E_HOST_MEMORY, std::string(kName) + ": stream_create: the system gives no further thread; use fewer streams");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  *out = stream.release();
  return FLHAL_OK;
}

// Slot 19. Its work has ended; core has waited for that.
void stream_destroy(flhal_p_stream* stream) {
  {
    std::lock_guard lock(stream->device->plugin->mutex);
    stream->stop = true;
    stream->device->plugin->changed.notify_all();
  }
  stream->worker.join();
  delete stream;
}

static flhal_status told(flhal_status failure) {
  if (failure != FLHAL_OK) throw flhal::Error(failure, std::string(kName) + ": work of the stream failed");
  return FLHAL_OK;
}

// Slot 20. Never waits for work.
flhal_status stream_query(flhal_p_stream* stream) {
  std::lock_guard lock(stream->device->plugin->mutex);
  told(stream->failure);
  return stream->completed == stream->submitted ? FLHAL_OK : FLHAL_NOT_READY;
}

// Slot 21. Waits for what was submitted before, not for what other threads submit meanwhile.
flhal_status stream_synchronize(flhal_p_stream* stream) {
  std::unique_lock lock(stream->device->plugin->mutex);
  stream->device->plugin->changed.wait(lock, [stream, until = stream->submitted] { return stream->completed >= until; });
  return told(stream->failure);
}

}  // namespace chip
