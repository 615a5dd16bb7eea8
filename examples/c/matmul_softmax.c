/* examples/c/matmul_softmax.c: softmax(a @ b) on every chip that is found. */
#include "chips.h"

static void compute(flhal_stream* stream, uint32_t op, const flhal_tensor* tensors, uint32_t n_inputs) {
  flhal_op_call call = {.struct_size = sizeof call, .struct_type = FLHAL_ST_OP_CALL, .op = op, .tensors = tensors,
                        .tensor_stride = sizeof *tensors, .n_outputs = 1, .n_inputs = n_inputs, .compute_dtype = FLHAL_F32};
  must(flhal_op_run(stream, &call), "flhal_op_run");
}

static void run(flhal_device* device, const flhal_device_info* info) {
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{.1f, .2f}, {.3f, .4f}, {.5f, .6f}};
  const int64_t size_a[] = {2, 3}, row_a[] = {3, 1}, size_b[] = {3, 2}, size_c[] = {2, 2}, row_c[] = {2, 1};
  flhal_stream* stream = flhal_stream_default(device);
  must(stream ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_stream_default");
  flhal_addr p[3];                                   /* c, a, b: outputs come first */
  for (int k = 0; k < 3; ++k) must(flhal_alloc(stream, 64, &p[k]), "flhal_alloc");
  must(flhal_copy(stream, p[1], (flhal_addr)(uintptr_t)a, sizeof a, 0), "flhal_copy");
  must(flhal_copy(stream, p[2], (flhal_addr)(uintptr_t)b, sizeof b, 0), "flhal_copy");
  flhal_tensor t[] = {{.address = p[0], .sizes = size_c, .strides = row_c, .dtype = FLHAL_F32, .rank = 2},
                      {.address = p[1], .sizes = size_a, .strides = row_a, .dtype = FLHAL_F32, .rank = 2},
                      {.address = p[2], .sizes = size_b, .strides = row_c, .dtype = FLHAL_F32, .rank = 2},
                      {.flags = FLHAL_TENSOR_ABSENT}};       /* no matrix to add */
  compute(stream, FLHAL_OP_MATMUL, t, 3);
  compute(stream, FLHAL_OP_SOFTMAX, (flhal_tensor[]){t[0], t[0]}, 1);   /* in place, along the last dimension */
  float c[2][2];
  must(flhal_copy(stream, (flhal_addr)(uintptr_t)c, p[0], sizeof c, 0), "flhal_copy");
  must(flhal_stream_synchronize(stream), "flhal_stream_synchronize");
  printf("[%u] %s: %.4f %.4f / %.4f %.4f\n", info->index, info->name, c[0][0], c[0][1], c[1][0], c[1][1]);
  for (int k = 0; k < 3; ++k) flhal_free(p[k]);
}

int main(void) {
  for_each_chip(run);
  return 0;
}
