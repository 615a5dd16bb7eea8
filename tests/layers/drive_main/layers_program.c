// tests/layers/drive_main/layers_program.c: a small program of an integrator: upload, add, index, fill, download.
#include <flhal/flhal.h>
#include <flhal/ops.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                        \
  do {                                                     \
    if ((call) < 0) {                                      \
      char text[1024];                                     \
      flhal_last_error(text, sizeof text, NULL);           \
      fprintf(stderr, "%s: %s\n", #call, text);            \
      exit(1);                                             \
    }                                                      \
  } while (0)

int main(void) {
  if (flhal_device_count() == 0) return 2;
  flhal_stream* stream = flhal_stream_default(flhal_device_at(0));
  float a[1001], out[1001];
  for (int i = 0; i < 1001; ++i) a[i] = 1.0f + (float)i;
  uint64_t at[2];
  for (int i = 0; i < 2; ++i) CHECK(flhal_alloc(stream, sizeof a, &at[i]));
  CHECK(flhal_copy(stream, at[0], (uint64_t)(uintptr_t)a, sizeof a - 1, 0));
  CHECK(flhal_copy(stream, at[0], (uint64_t)(uintptr_t)a, sizeof a, 0));
  const int64_t sizes[1] = {1001}, strides[1] = {1};
  flhal_tensor t[3] = {0};
  for (int i = 0; i < 3; ++i) {
    t[i].address = i == 0 ? at[1] : at[0];
    t[i].sizes = sizes;
    t[i].strides = strides;
    t[i].dtype = FLHAL_F32;
    t[i].rank = 1;
  }
  for (int k = 0; k < 2; ++k) {
    flhal_op_call call = {0};
    call.struct_size = sizeof call;
    call.struct_type = 10;
    call.op = k == 0 ? FLHAL_OP_ADD : FLHAL_OP_EXP;
    call.tensors = t;
    call.tensor_stride = sizeof t[0];
    call.n_outputs = 1;
    call.n_inputs = k == 0 ? 2 : 1;
    CHECK(flhal_op_run(stream, &call));
  }
  const uint32_t zero = 0;
  CHECK(flhal_fill(stream, at[0], 64, &zero, 4));
  CHECK(flhal_copy(stream, (uint64_t)(uintptr_t)out, at[1], 7, 0));
  CHECK(flhal_copy(stream, (uint64_t)(uintptr_t)out, at[1], sizeof out, 0));
  CHECK(flhal_stream_synchronize(stream));
  for (int i = 0; i < 2; ++i) flhal_free(at[i]);
  CHECK(flhal_shutdown());
  return 0;
}
