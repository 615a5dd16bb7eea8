/* examples/c/shared_object.c: kernels from a shared object, on chips that are this process's own processor. The object is given as a
 * path or as its bytes, with the C signatures of its functions; flhal calls them through libffi. */
#include "chips.h"

#include <string.h>

enum { N = 1000 };

static const char kSignatures[] = "saxpy(f32, ptr, ptr, first, count); sum(ptr, u32, ptr)";

static void run(flhal_device* device, const flhal_device_info* info) {
  if (!strstr(info->dialects, FLHAL_DIALECT_HOST_ELF)) {
    printf("[%u] %s: takes no shared objects (it takes \"%s\")\n", info->index, info->name, info->dialects);
    return;
  }
  flhal_module* module;
  flhal_function *saxpy, *sum;
  flhal_stream* stream = flhal_stream_default(device);
  must(stream ? FLHAL_OK : FLHAL_E_NOT_FOUND, "flhal_stream_default");
  must(flhal_module_load(device, FLHAL_DIALECT_HOST_ELF, KERNELS, strlen(KERNELS), kSignatures, &module), "flhal_module_load");
  must(flhal_function_get(module, "saxpy", &saxpy), "flhal_function_get");
  must(flhal_function_get(module, "sum", &sum), "flhal_function_get");

  float x[N], y[N];
  for (int i = 0; i < N; ++i) x[i] = (float)i, y[i] = 1;
  flhal_addr at_x, at_y, at_sum;
  must(flhal_alloc(stream, sizeof x, &at_x), "flhal_alloc");
  must(flhal_alloc(stream, sizeof y, &at_y), "flhal_alloc");
  must(flhal_alloc(stream, sizeof(double), &at_sum), "flhal_alloc");
  must(flhal_copy(stream, at_x, (flhal_addr)(uintptr_t)x, sizeof x, 0), "flhal_copy");
  must(flhal_copy(stream, at_y, (flhal_addr)(uintptr_t)y, sizeof y, 0), "flhal_copy");

  const float a = 0.5f;
  const uint32_t n = N;
  const uint32_t one[] = {1, 1, 1};
  const flhal_kernel_arg for_saxpy[] = {{.kind = FLHAL_KERNEL_ARG_VALUE, .size = sizeof a, .value = &a},
                                        {.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_x},
                                        {.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_y}};
  const flhal_kernel_arg for_sum[] = {{.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_y},
                                      {.kind = FLHAL_KERNEL_ARG_VALUE, .size = sizeof n, .value = &n},
                                      {.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_sum}};
  must(flhal_launch(stream, saxpy, (const uint64_t[]){N, 1, 1}, one, for_saxpy, 3), "flhal_launch");
  must(flhal_launch(stream, sum, (const uint64_t[]){1, 1, 1}, one, for_sum, 3), "flhal_launch");
  double total = 0;
  must(flhal_copy(stream, (flhal_addr)(uintptr_t)&total, at_sum, sizeof total, 0), "flhal_copy");
  must(flhal_stream_synchronize(stream), "flhal_stream_synchronize");
  printf("[%u] %s: the sum is %.0f, by functions of a shared object\n", info->index, info->name, total);

  must(flhal_module_release(module), "flhal_module_release");
  must(flhal_free(at_x), "flhal_free");
  must(flhal_free(at_y), "flhal_free");
  must(flhal_free(at_sum), "flhal_free");
}

int main(void) {
  for_each_chip(run);
  return 0;
}
