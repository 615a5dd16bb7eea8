/* examples/c/vendor_op.c: an operator that only a maker's plugin knows, called by its name. The report "vendor_ops" lists those of the
 * chips that are open. */
#include "chips.h"

#include <string.h>

static const char kName[] = "mock.weighted_sum";   /* (Tensor a, Tensor b, float weight=1.0) -> Tensor */

static void run(flhal_device* device, const flhal_device_info* info) {
  const float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  const int64_t sizes[] = {4}, strides[] = {1};
  flhal_stream* stream = flhal_stream_default(device);
  flhal_tensor operands[3];   /* the output, then the inputs */
  must(stream ? FLHAL_OK : FLHAL_E_NOT_FOUND, "flhal_stream_default");
  for (int i = 0; i < 3; ++i) {
    operands[i] = (flhal_tensor){.sizes = sizes, .strides = strides, .dtype = FLHAL_F32, .rank = 1};
    must(flhal_alloc(stream, sizeof a, &operands[i].address), "flhal_alloc");
  }
  must(flhal_copy(stream, operands[1].address, (flhal_addr)(uintptr_t)a, sizeof a, 0), "flhal_copy");
  must(flhal_copy(stream, operands[2].address, (flhal_addr)(uintptr_t)b, sizeof b, 0), "flhal_copy");

  /* The key of an attribute is its place in the schema. One that has its default value is left out. */
  const flhal_attr weight = {.key = 2, .kind = FLHAL_ATTR_FLOAT, .count = 1, .v.f = 0.5};
  const flhal_op_call call = {.struct_size = sizeof call, .struct_type = FLHAL_ST_OP_CALL, .name = kName, .tensors = operands,
                              .tensor_stride = sizeof *operands, .n_outputs = 1, .n_inputs = 2, .attrs = &weight, .n_attrs = 1,
                              .attr_stride = sizeof weight};
  const flhal_status status = flhal_op_run(stream, &call);
  if (status == FLHAL_E_NOT_FOUND) {
    printf("[%u] %s: its plugin %s has no operator %s\n", info->index, info->name, info->plugin, kName);
  } else {
    float out[4];
    must(status, "flhal_op_run");
    must(flhal_copy(stream, (flhal_addr)(uintptr_t)out, operands[0].address, sizeof out, 0), "flhal_copy");
    must(flhal_stream_synchronize(stream), "flhal_stream_synchronize");
    printf("[%u] %s: %g %g %g %g\n", info->index, info->name, out[0], out[1], out[2], out[3]);
  }
  for (int i = 0; i < 3; ++i) must(flhal_free(operands[i].address), "flhal_free");
}

int main(void) {
  for_each_chip(run);
  return 0;
}
