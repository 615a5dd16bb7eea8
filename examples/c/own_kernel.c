/* examples/c/own_kernel.c: an application's own kernel, y = a x + y, on every chip that takes code in a dialect written here.
 * A chip says which dialects it takes (flhal_device_info.dialects); flhal compiles nothing by itself. */
#include "chips.h"

#include <flhal/plugin.h>   /* FLHAL_DIALECT_HOST: code for a chip that is this process's own processor */
#include <string.h>

enum { N = 1000, GROUP = 10 };

static const char kOpenCL[] =
    "__kernel void saxpy(float a, __global const float* x, __global float* y) {\n"
    "  size_t i = get_global_id(0);\n"
    "  y[i] = a * x[i] + y[i];\n"
    "}\n";

/* Runs the groups first .. first + count - 1, on any thread. argv[i] points to a value, or is the memory. */
static void saxpy(const void* const* argv, uint64_t first, uint64_t count) {
  const float a = *(const float*)argv[0], *x = argv[1];
  float* y = (float*)(uintptr_t)argv[2];
  for (uint64_t i = first * GROUP; i < (first + count) * GROUP; ++i) y[i] = a * x[i] + y[i];
}
static const flhal_host_function kFunctions[] = {{"saxpy", saxpy}};
static const flhal_host_module kHost = {sizeof kHost, 1, kFunctions};

static const struct { const char* dialect; const void* data; uint64_t bytes; uint32_t group_size; } kCode[] = {
    {"opencl-c-1.2", kOpenCL, sizeof kOpenCL - 1, GROUP}, {FLHAL_DIALECT_HOST, &kHost, sizeof kHost, 1}};

static int takes(const char* dialects, const char* dialect) {   /* a list with spaces between */
  const size_t n = strlen(dialect);
  for (const char* at = strstr(dialects, dialect); at; at = strstr(at + 1, dialect))
    if ((at == dialects || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return 1;
  return 0;
}

static void run(flhal_device* device, const flhal_device_info* info) {
  size_t k = 0;
  while (k < sizeof kCode / sizeof *kCode && !takes(info->dialects, kCode[k].dialect)) ++k;
  if (k == sizeof kCode / sizeof *kCode) {
    printf("[%u] %s: takes no code in a dialect written here (it takes \"%s\")\n", info->index, info->name, info->dialects);
    return;
  }
  flhal_module* module;
  flhal_function* function;
  flhal_stream* stream = flhal_stream_default(device);
  must(stream ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_stream_default");
  must(flhal_module_load(device, kCode[k].dialect, kCode[k].data, kCode[k].bytes, "", &module), "flhal_module_load");
  must(flhal_function_get(module, "saxpy", &function), "flhal_function_get");
  float x[N], y[N];
  for (int i = 0; i < N; ++i) x[i] = (float)i, y[i] = 1;
  flhal_addr at_x, at_y;
  must(flhal_alloc(stream, sizeof x, &at_x), "flhal_alloc");
  must(flhal_alloc(stream, sizeof y, &at_y), "flhal_alloc");
  must(flhal_copy(stream, at_x, (flhal_addr)(uintptr_t)x, sizeof x, 0), "flhal_copy");
  must(flhal_copy(stream, at_y, (flhal_addr)(uintptr_t)y, sizeof y, 0), "flhal_copy");
  const float a = 0.5f;
  const flhal_kernel_arg args[] = {{.kind = FLHAL_KERNEL_ARG_VALUE, .size = sizeof a, .value = &a},
                                   {.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_x},
                                   {.kind = FLHAL_KERNEL_ARG_MEMORY, .address = at_y}};
  must(flhal_launch(stream, function, (const uint64_t[]){N / GROUP, 1, 1}, (const uint32_t[]){kCode[k].group_size, 1, 1}, args, 3),
       "flhal_launch");
  must(flhal_copy(stream, (flhal_addr)(uintptr_t)y, at_y, sizeof y, 0), "flhal_copy");
  must(flhal_stream_synchronize(stream), "flhal_stream_synchronize");
  printf("[%u] %s: y[999] = %.1f, by %s\n", info->index, info->name, y[999], kCode[k].dialect);
  must(flhal_module_release(module), "flhal_module_release");
  must(flhal_free(at_x), "flhal_free");
  must(flhal_free(at_y), "flhal_free");
}

int main(void) {
  for_each_chip(run);
  return 0;
}
