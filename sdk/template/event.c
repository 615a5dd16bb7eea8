/* event.c: points in queues, which the host and other queues wait for. driver: its own events.
 *
 * Idea: each record takes the event's next number, `armed`; the worker that comes to it stores the number in `done`. A wait takes
 * the number of its moment, so a later record does not prolong it.
 * Threads: plugin->mutex guards both. */
#include "chip.h"

#include <stddef.h>
#include <string.h>

struct flhal_p_event {
  flhal_p_device* device;
  uint32_t flags;
  uint64_t armed, done;                   /* equal: nothing to wait for                               */
  uint64_t time_ns;                       /* of `done`                                                */
  flhal_status outcome;                   /* of all work in front of `done`                           */
};

struct point {                            /* what queued work knows of an event                       */
  flhal_p_event* event;
  flhal_p_stream* stream;
  uint64_t number;
};

/* With the mutex held. */
static void reach(flhal_p_event* event, uint64_t number, flhal_status outcome) {
  flhal_p_plugin* plugin = event->device->plugin;
  if (number <= event->done) return;      /* records of two streams: the later one came first         */
  event->done = number;
  event->outcome = outcome;
  event->time_ns = plugin->host->now_ns();
  pthread_cond_broadcast(&plugin->changed);
}

/* With the mutex held, which waiting lets go. */
static flhal_status wait_for(flhal_p_event* event, uint64_t number) {
  flhal_p_plugin* plugin = event->device->plugin;
  while (event->done < number) pthread_cond_wait(&plugin->changed, &plugin->mutex);
  return event->outcome;
}

static flhal_status run_record(void* what) {
  const struct point* point = what;
  flhal_p_plugin* plugin = point->event->device->plugin;
  pthread_mutex_lock(&plugin->mutex);
  reach(point->event, point->number, point->stream->failure);
  pthread_mutex_unlock(&plugin->mutex);
  return FLHAL_OK;
}

static flhal_status run_wait(void* what) {
  const struct point* point = what;
  flhal_p_plugin* plugin = point->event->device->plugin;
  flhal_status outcome;
  pthread_mutex_lock(&plugin->mutex);
  outcome = wait_for(point->event, point->number);
  pthread_mutex_unlock(&plugin->mutex);
  return outcome;                         /* what failed in front of the event arrives in this stream, too */
}

static flhal_status told(flhal_p_event* event, flhal_status outcome) {
  if (outcome == FLHAL_OK) return FLHAL_OK;
  return chip_fail(event->device->plugin, outcome, CHIP_NAME ": work in front of the event failed");
}

/* Slot 22. A host-signalled event is unfinished until event_signal; every other one is done until it is recorded. */
flhal_status chip_event_create(flhal_p_device* device, uint32_t flags, flhal_p_event** out) {
  flhal_p_event* event = device->plugin->host->alloc(sizeof *event, 16);
  if (event == NULL) return FLHAL_E_HOST_MEMORY;
  memset(event, 0, sizeof *event);
  event->device = device;
  event->flags = flags;
  event->armed = flags & FLHAL_EVENT_HOST_SIGNALED ? 1 : 0;
  *out = event;
  return FLHAL_OK;
}

/* Slot 23. Nothing queued names it any more. */
void chip_event_destroy(flhal_p_event* event) { event->device->plugin->host->free(event); }

/* Slot 24. */
flhal_status chip_event_record(flhal_p_event* event, flhal_p_stream* stream) {
  flhal_p_plugin* plugin = event->device->plugin;
  struct point point = {.event = event, .stream = stream};
  if (event->flags & FLHAL_EVENT_HOST_SIGNALED)
    return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": event_record: the event is the host's to signal");
  pthread_mutex_lock(&plugin->mutex);
  point.number = ++event->armed;
  if (stream == NULL) reach(event, point.number, FLHAL_OK);
  pthread_mutex_unlock(&plugin->mutex);
  return stream == NULL ? FLHAL_OK : chip_enqueue_copy(stream, run_record, &point, sizeof point);
}

/* Slot 25. The stream waits, the caller does not (but for stream NULL, which means: now). */
flhal_status chip_event_wait(flhal_p_event* event, flhal_p_stream* stream) {
  flhal_p_plugin* plugin = event->device->plugin;
  struct point point = {.event = event, .stream = stream};
  flhal_status outcome;
  pthread_mutex_lock(&plugin->mutex);
  point.number = event->armed;
  outcome = stream == NULL ? wait_for(event, point.number) : FLHAL_OK;
  pthread_mutex_unlock(&plugin->mutex);
  return stream == NULL ? told(event, outcome) : chip_enqueue_copy(stream, run_wait, &point, sizeof point);
}

/* Slot 26. */
flhal_status chip_event_query(flhal_p_event* event) {
  flhal_p_plugin* plugin = event->device->plugin;
  flhal_status outcome;
  pthread_mutex_lock(&plugin->mutex);
  outcome = event->done < event->armed ? FLHAL_NOT_READY : event->outcome;
  pthread_mutex_unlock(&plugin->mutex);
  return outcome == FLHAL_NOT_READY ? FLHAL_NOT_READY : told(event, outcome);
}

/* Slot 27. */
flhal_status chip_event_synchronize(flhal_p_event* event) {
  flhal_p_plugin* plugin = event->device->plugin;
  flhal_status outcome;
  pthread_mutex_lock(&plugin->mutex);
  outcome = wait_for(event, event->armed);
  pthread_mutex_unlock(&plugin->mutex);
  return told(event, outcome);
}

/* Slot 28. */
flhal_status chip_event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out) {
  flhal_p_plugin* plugin = from->device->plugin;
  int recorded, finished;
  if (!(from->flags & to->flags & FLHAL_EVENT_TIMING))
    return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": event_elapsed_ns: both events need FLHAL_EVENT_TIMING");
  pthread_mutex_lock(&plugin->mutex);
  recorded = from->armed != 0 && to->armed != 0;
  finished = from->done == from->armed && to->done == to->armed;
  if (recorded && finished) *out = to->time_ns > from->time_ns ? to->time_ns - from->time_ns : 0;
  pthread_mutex_unlock(&plugin->mutex);
  if (!recorded) return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": event_elapsed_ns: record both events first");
  return finished ? FLHAL_OK : FLHAL_NOT_READY;
}

/* Slot 29. Another maker's chip, or the host, has come to the point. */
flhal_status chip_event_signal(flhal_p_event* event, flhal_status status) {
  flhal_p_plugin* plugin = event->device->plugin;
  if (!(event->flags & FLHAL_EVENT_HOST_SIGNALED))
    return chip_fail(plugin, FLHAL_E_INVALID, CHIP_NAME ": event_signal: the event was made without FLHAL_EVENT_HOST_SIGNALED");
  pthread_mutex_lock(&plugin->mutex);
  reach(event, 1, status);
  pthread_mutex_unlock(&plugin->mutex);
  return FLHAL_OK;
}
