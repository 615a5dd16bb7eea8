/* examples/c/streams.c: two streams of one chip, ordered by events; the host waits once, at the end. */
#include "chips.h"

enum { N = 1 << 20 };

static flhal_tensor vector_at(flhal_addr address, const int64_t* size, const int64_t* stride) {
  return (flhal_tensor){.address = address, .sizes = size, .strides = stride, .dtype = FLHAL_F32, .rank = 1};
}

static void run(flhal_device* device, const flhal_device_info* info) {
  const int64_t size = N, stride = 1;
  const uint64_t bytes = N * sizeof(float);
  flhal_stream *copies, *compute = flhal_stream_default(device);
  must(compute ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_stream_default");
  must(flhal_stream_create(device, 0, &copies), "flhal_stream_create");
  flhal_event *begin, *uploaded, *computed;
  must(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &begin), "flhal_event_create");
  must(flhal_event_create(0, &uploaded), "flhal_event_create");
  must(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &computed), "flhal_event_create");
  void* host;                                            /* pinned: copies need not wait for it */
  must(flhal_host_alloc(device, bytes, &host), "flhal_host_alloc");
  float* values = host;
  for (int i = 0; i < N; ++i) values[i] = (float)(i % 100);

  flhal_addr x;
  must(flhal_alloc(copies, bytes, &x), "flhal_alloc");
  must(flhal_copy(copies, x, (flhal_addr)(uintptr_t)host, bytes, FLHAL_COPY_MAY_RETURN_EARLY), "flhal_copy");
  must(flhal_event_record(uploaded, copies), "flhal_event_record");

  must(flhal_event_wait(uploaded, compute), "flhal_event_wait");   /* compute begins when the upload has ended */
  must(flhal_event_record(begin, compute), "flhal_event_record");
  flhal_tensor t[] = {vector_at(x, &size, &stride), vector_at(x, &size, &stride), vector_at(x, &size, &stride)};
  flhal_op_call doubled = {.struct_size = sizeof doubled, .struct_type = FLHAL_ST_OP_CALL, .op = FLHAL_OP_ADD, .tensors = t,
                           .tensor_stride = sizeof *t, .n_outputs = 1, .n_inputs = 2, .compute_dtype = FLHAL_F32};
  must(flhal_op_run(compute, &doubled), "flhal_op_run");           /* x = x + x */
  must(flhal_event_record(computed, compute), "flhal_event_record");

  must(flhal_event_wait(computed, copies), "flhal_event_wait");
  must(flhal_copy(copies, (flhal_addr)(uintptr_t)host, x, bytes, FLHAL_COPY_MAY_RETURN_EARLY), "flhal_copy");
  must(flhal_memory_used_on(x, compute), "flhal_memory_used_on");  /* x came from `copies`; the other stream used it too */
  must(flhal_free(x), "flhal_free");                               /* legal at once: reused in order */
  must(flhal_stream_synchronize(copies), "flhal_stream_synchronize");

  double sum = 0;
  for (int i = 0; i < N; ++i) sum += values[i];
  uint64_t ns = 0;
  must(flhal_event_elapsed_ns(begin, computed, &ns), "flhal_event_elapsed_ns");
  printf("[%u] %s: sum %.0f, the sum of two vectors took %.3f ms\n", info->index, info->name, sum, (double)ns / 1e6);
  flhal_host_free(host);
  flhal_event_release(begin), flhal_event_release(uploaded), flhal_event_release(computed);
  flhal_stream_release(copies);
}

int main(void) {
  for_each_chip(run);
  return 0;
}
