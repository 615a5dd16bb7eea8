/* tests/worker/exit_with_work.c: queues slow calls on the first device's default stream at async level 2, prints how many,
 * and ends as its argument says: "return" from main, "exit" while a second thread goes on calling, "shutdown", "status" by
 * exit(7). With "one" it makes one call and waits for it. Of "return" it then prints whether the stream was ready at the end. */
#include <flhal/flhal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 1 << 16, kCalls = 200 };
static flhal_stream* g_stream;
static flhal_addr g_address;

static void must(flhal_status status, const char* what) {
  char text[2048];
  if (status == FLHAL_OK) return;
  flhal_last_error(text, sizeof text, NULL);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(2);
}

static void* keep_calling(void* unused) {
  unsigned char one = 1;
  (void)unused;
  for (;;) (void)flhal_fill(g_stream, g_address, kBytes, &one, 1);
  return NULL;
}

/* Registered before flhal's handlers, so it runs after them. */
static void at_the_end(void) {
  printf("at the end: %s\n", flhal_stream_query(g_stream) == FLHAL_OK ? "ready" : "not ready");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  unsigned char byte = 0;
  pthread_t thread;
  int i;
  if (!strcmp(how, "return")) atexit(at_the_end);
  must(flhal_config_set("async_level", "2"), "async_level");
  g_stream = flhal_stream_default(flhal_device_at(0));
  must(g_stream ? FLHAL_OK : FLHAL_E_NOT_FOUND, "stream");
  must(flhal_alloc(g_stream, kBytes, &g_address), "alloc");
  if (!strcmp(how, "one")) {
    must(flhal_fill(g_stream, g_address, kBytes, &byte, 1), "fill");
    must(flhal_stream_synchronize(g_stream), "synchronize");
    return 0;
  }
  for (i = 0; i < kCalls; ++i, ++byte) must(flhal_fill(g_stream, g_address, kBytes, &byte, 1), "fill");
  printf("queued %d, %s\n", kCalls, flhal_stream_query(g_stream) == FLHAL_NOT_READY ? "not ready" : "ready");
  fflush(stdout);
  if (!strcmp(how, "shutdown")) {
    must(flhal_shutdown(), "shutdown");
    printf("shut down\n");
  } else if (!strcmp(how, "exit")) {
    if (pthread_create(&thread, NULL, keep_calling, NULL) != 0) return 3;
    exit(0);
  } else if (!strcmp(how, "status")) {
    printf("not flushed by the program\n");
    exit(7);
  }
  return 0;
}
