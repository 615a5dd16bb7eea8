/* stream.c: queues of work. driver: its own queues; then each slot here is one call of it.
 *
 * Idea: a stream is a list of work and one thread that does it in order, so streams run beside each other. A point in it is an
 * event (event.c).
 * Threads: plugin->mutex guards the lists and counts; it is not held while work runs. */
#define _POSIX_C_SOURCE 200809L
#include "chip.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

struct chip_work {
  struct chip_work* next;
  flhal_status (*run)(void* what);
  void* what;
};

static void* work_through(void* argument) {
  flhal_p_stream* stream = argument;
  flhal_p_plugin* plugin = stream->device->plugin;
  pthread_mutex_lock(&plugin->mutex);
  for (;;) {
    struct chip_work* work = stream->first;
    flhal_status status;
    if (work == NULL && stream->stop) break;
    if (work == NULL) {
      pthread_cond_wait(&plugin->changed, &plugin->mutex);
      continue;
    }
    stream->first = work->next;
    if (stream->first == NULL) stream->last = &stream->first;
    pthread_mutex_unlock(&plugin->mutex);
    status = work->run(work->what);
    plugin->host->free(work->what);
    plugin->host->free(work);
    pthread_mutex_lock(&plugin->mutex);
    if (status != FLHAL_OK && stream->failure == FLHAL_OK) stream->failure = status;
    ++stream->completed;
    pthread_cond_broadcast(&plugin->changed);
  }
  pthread_mutex_unlock(&plugin->mutex);
  return NULL;
}

/* Slot 18. The worker blocks every signal: the program's handlers are for the program's threads. */
flhal_status chip_stream_create(flhal_p_device* device, int32_t priority, uint32_t flags, flhal_p_stream** out) {
  const flhal_host_v1* host = device->plugin->host;
  flhal_p_stream* stream = host->alloc(sizeof *stream, 16);
  sigset_t all, before;
  int started;
  (void)priority;                                     /* a hint */
  (void)flags;
  if (stream == NULL) return FLHAL_E_HOST_MEMORY;
  memset(stream, 0, sizeof *stream);
  stream->device = device;
  stream->last = &stream->first;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  started = pthread_create(&stream->worker, NULL, work_through, stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started != 0) {
    host->free(stream);
    return chip_fail(device->plugin, FLHAL_E_HOST_MEMORY, CHIP_NAME ": stream_create: the system gives no further thread; use fewer streams");
  }
  *out = stream;
  return FLHAL_OK;
}

/* Slot 19. Its work has ended; core has waited for that. */
void chip_stream_destroy(flhal_p_stream* stream) {
  flhal_p_plugin* plugin = stream->device->plugin;
  pthread_mutex_lock(&plugin->mutex);
  stream->stop = 1;
  pthread_cond_broadcast(&plugin->changed);
  pthread_mutex_unlock(&plugin->mutex);
  pthread_join(stream->worker, NULL);
  plugin->host->free(stream);
}

static flhal_status told(flhal_p_plugin* plugin, flhal_status failure) {
  return chip_fail(plugin, failure, CHIP_NAME ": work of the stream failed");
}

/* Slot 20. Never waits for work. */
flhal_status chip_stream_query(flhal_p_stream* stream) {
  flhal_p_plugin* plugin = stream->device->plugin;
  flhal_status failure;
  int finished;
  pthread_mutex_lock(&plugin->mutex);
  failure = stream->failure;
  finished = stream->completed == stream->submitted;
  pthread_mutex_unlock(&plugin->mutex);
  if (failure != FLHAL_OK) return told(plugin, failure);
  return finished ? FLHAL_OK : FLHAL_NOT_READY;
}

/* Slot 21. Waits for what was submitted before, not for what other threads submit meanwhile. */
flhal_status chip_stream_synchronize(flhal_p_stream* stream) {
  flhal_p_plugin* plugin = stream->device->plugin;
  flhal_status failure;
  uint64_t until;
  pthread_mutex_lock(&plugin->mutex);
  until = stream->submitted;
  while (stream->completed < until) pthread_cond_wait(&plugin->changed, &plugin->mutex);
  failure = stream->failure;
  pthread_mutex_unlock(&plugin->mutex);
  return failure == FLHAL_OK ? FLHAL_OK : told(plugin, failure);
}

flhal_status chip_enqueue(flhal_p_stream* stream, flhal_status (*run)(void* what), void* what) {
  flhal_p_plugin* plugin = stream->device->plugin;
  struct chip_work* work = plugin->host->alloc(sizeof *work, 16);
  if (work == NULL) {
    plugin->host->free(what);
    return FLHAL_E_HOST_MEMORY;
  }
  work->next = NULL;
  work->run = run;
  work->what = what;
  pthread_mutex_lock(&plugin->mutex);
  *stream->last = work;
  stream->last = &work->next;
  ++stream->submitted;
  pthread_cond_broadcast(&plugin->changed);
  pthread_mutex_unlock(&plugin->mutex);
  return FLHAL_OK;
}

flhal_status chip_enqueue_copy(flhal_p_stream* stream, flhal_status (*run)(void* what), const void* what, uint64_t bytes) {
  void* kept = stream->device->plugin->host->alloc(bytes, 16);
  if (kept == NULL) return FLHAL_E_HOST_MEMORY;
  memcpy(kept, what, bytes);
  return chip_enqueue(stream, run, kept);
}
