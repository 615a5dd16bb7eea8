/* examples/c/two_chips.c: a pipeline over every chip that is found, in their order, whoever made them: each multiplies what the
 * one before it left by 2. The chips wait for each other; the host waits once. */
#include "chips.h"

enum { N = 1000, MOST = 16 };

static void times_two(flhal_stream* stream, flhal_addr x) {
  const int64_t size = N, stride = 1;
  const flhal_tensor v = {.address = x, .sizes = &size, .strides = &stride, .dtype = FLHAL_F32, .rank = 1}, t[] = {v, v, v};
  flhal_op_call call = {.struct_size = sizeof call, .struct_type = FLHAL_ST_OP_CALL, .op = FLHAL_OP_ADD, .tensors = t,
                        .tensor_stride = sizeof *t, .n_outputs = 1, .n_inputs = 2, .compute_dtype = FLHAL_F32};
  must(flhal_op_run(stream, &call), "flhal_op_run");
}

int main(void) {
  const uint32_t found = flhal_device_count(), chips = found < MOST ? found : MOST;
  must(found > 0 ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_device_count");
  float values[N];
  for (int i = 0; i < N; ++i) values[i] = (float)i;
  flhal_addr at[MOST];
  flhal_stream* stream[MOST];
  flhal_event* done;
  must(flhal_event_create(0, &done), "flhal_event_create");
  for (uint32_t i = 0; i < chips; ++i) {
    flhal_device_info info = {.struct_size = sizeof info};
    must(flhal_device_get_info(flhal_device_at(i), &info), "flhal_device_get_info");
    stream[i] = flhal_stream_default(flhal_device_at(i));
    must(stream[i] ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_stream_default");
    must(flhal_alloc(stream[i], sizeof values, &at[i]), "flhal_alloc");
    const flhal_addr from = i == 0 ? (flhal_addr)(uintptr_t)values : at[i - 1];
    if (i > 0) must(flhal_event_wait(done, stream[i]), "flhal_event_wait");   /* an event belongs to no chip */
    must(flhal_copy(stream[i], at[i], from, sizeof values, 0), "flhal_copy");
    times_two(stream[i], at[i]);
    must(flhal_event_record(done, stream[i]), "flhal_event_record");
    printf("%s%s", i ? " -> " : "", info.name);
  }
  must(flhal_copy(stream[chips - 1], (flhal_addr)(uintptr_t)values, at[chips - 1], sizeof values, 0), "flhal_copy");
  must(flhal_stream_synchronize(stream[chips - 1]), "flhal_stream_synchronize");
  printf(": 3 became %.0f\n", values[3]);
  for (uint32_t i = 0; i < chips; ++i) must(flhal_free(at[i]), "flhal_free");
  must(flhal_event_release(done), "flhal_event_release");
  for (int i = 0; i < N; ++i)
    if (values[i] != (float)((uint64_t)i << chips)) return fprintf(stderr, "element %d is %f\n", i, values[i]), 1;
  return 0;
}
