/* app.c: a program of ABI 1.0, frozen with its headers: it loads, copies, queues, computes and launches on one chip.
 *
 * Usage: app CHIP       One line for each step; exit status 1 and the library's sentence at the first that is wrong. */
#include <flhal/flhal.h>
#include <flhal/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256 };
static flhal_device* device;
static flhal_stream* stream;

static void wrong(const char* step, const char* what) {
  char text[4096];
  flhal_status status = flhal_last_error(text, sizeof text, NULL);
  printf("%s: WRONG: %s; last failure %s: %s\n", step, what, flhal_status_name(status), text);
  exit(1);
}
#define MUST(condition) \
  do { if (!(condition)) wrong(step, #condition); } while (0)
#define OK(call) MUST((call) == FLHAL_OK)

static flhal_addr number(const void* p) { return (flhal_addr)(uintptr_t)p; }

static void count_text(void* ctx, const char* utf8, uint64_t n) {
  (void)utf8;
  *(uint64_t*)ctx += n;
}

static void load(const char* chip, flhal_device_info* info) {
  const char* step = "load";
  uint32_t index = 0;
  OK(flhal_init(FLHAL_VERSION));
  MUST(flhal_device_count() >= 1);
  OK(flhal_device_find(chip, &index));
  device = flhal_device_at(index);
  MUST(device != NULL);
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  OK(flhal_device_get_info(device, info));
  MUST(strcmp(info->chip, chip) == 0 && info->struct_size == sizeof *info && info->dialects != NULL);
  OK(flhal_device_open(device));
  stream = flhal_stream_default(device);
  MUST(stream != NULL);
  printf("load: ok, %s of plugin %s\n", info->chip, info->plugin);
}

static void memory(flhal_addr a[3]) {
  const char* step = "memory";
  flhal_memory_place place;
  flhal_memory_stats stats;
  float in[N], out[N];
  const uint16_t pattern = 0x1234;
  uint16_t filled[4];
  void *view = NULL, *pinned = NULL;
  uint64_t ticket = 0;
  int i;
  for (i = 0; i < 3; ++i) OK(flhal_alloc(stream, sizeof in, &a[i]));
  for (i = 0; i < N; ++i) in[i] = (float)i;
  OK(flhal_copy(stream, a[0], number(in), sizeof in, 0));
  OK(flhal_copy(stream, a[1], a[0], sizeof in, 0));
  OK(flhal_copy(stream, number(out), a[1], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  MUST(memcmp(in, out, sizeof in) == 0);
  OK(flhal_fill(stream, a[2], sizeof in, &pattern, 2));
  OK(flhal_copy(stream, number(filled), a[2] + sizeof in - 8, 8, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < 4; ++i) MUST(filled[i] == pattern);
  memset(&place, 0, sizeof place);
  place.struct_size = sizeof place;
  OK(flhal_memory_lookup(a[1] + 4, &place));
  MUST(place.base == a[1] && place.bytes == sizeof in);
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  OK(flhal_memory_get_stats(device, &stats));
  MUST(stats.n_live >= 3 && stats.requested >= 3 * sizeof in);
  OK(flhal_host_begin(stream, a[0], sizeof in, FLHAL_READ | FLHAL_WRITE, &view, &ticket));
  MUST(((float*)view)[7] == 7);
  ((float*)view)[7] = 8;
  OK(flhal_host_end(stream, ticket));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  MUST(out[7] == 8 && out[6] == 6);
  OK(flhal_host_alloc(device, 4096, &pinned));
  OK(flhal_host_is_pinned((char*)pinned + 100));
  OK(flhal_copy(stream, number(pinned), a[1], sizeof in, FLHAL_COPY_MAY_RETURN_EARLY));
  OK(flhal_stream_synchronize(stream));
  MUST(memcmp(pinned, in, sizeof in) == 0);
  OK(flhal_host_free(pinned));
  MUST(flhal_copy(stream, a[0], a[1], sizeof in + 1, 0) == FLHAL_E_INVALID);
  printf("memory: ok\n");
}

static void streams(flhal_addr a[3]) {
  const char* step = "streams";
  flhal_stream* second = NULL;
  flhal_event *from = NULL, *to = NULL;
  uint64_t ns = 0;
  const uint32_t one = 1;
  OK(flhal_stream_create(device, 0, &second));
  MUST(flhal_stream_device(second) == device && flhal_stream_id(second) != flhal_stream_id(stream));
  OK(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &from));
  OK(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &to));
  OK(flhal_event_record(from, second));
  OK(flhal_memory_used_on(a[2], second));
  OK(flhal_fill(second, a[2], 64, &one, 4));
  OK(flhal_event_record(to, second));
  OK(flhal_event_wait(to, stream));
  OK(flhal_event_synchronize(to));
  OK(flhal_event_query(to));
  OK(flhal_event_elapsed_ns(from, to, &ns));
  OK(flhal_stream_synchronize(second));
  OK(flhal_stream_query(second));
  OK(flhal_event_release(from));
  OK(flhal_event_release(to));
  OK(flhal_stream_release(second));
  OK(flhal_device_synchronize(device));
  printf("streams: ok\n");
}

static void set_call(flhal_op_call* call, uint32_t op, flhal_tensor* t, uint32_t n_inputs) {
  memset(call, 0, sizeof *call);
  call->struct_size = sizeof *call;
  call->struct_type = FLHAL_ST_OP_CALL;
  call->op = op;
  call->tensors = t;
  call->tensor_stride = sizeof *t;
  call->n_outputs = 1;
  call->n_inputs = n_inputs;
}

static void ops(flhal_addr a[3]) {
  const char* step = "ops";
  static const char* const routes[] = {"none", "native", "kernel", "composite", "host", "declined"};
  const int64_t sizes[2] = {4, N / 4}, strides[2] = {N / 4, 1};
  int64_t inferred[32];
  flhal_tensor t[3], result;
  flhal_attr alpha;
  flhal_op_call call;
  float in[N], out[N], sum = 0;
  uint32_t route = 0;
  const char* reason = NULL;
  int i;
  memset(t, 0, sizeof t);
  memset(&alpha, 0, sizeof alpha);
  for (i = 0; i < 3; ++i) {
    t[i].address = a[i];
    t[i].sizes = sizes;
    t[i].strides = strides;
    t[i].rank = 2;
    t[i].dtype = FLHAL_F32;
  }
  for (i = 0; i < N; ++i) in[i] = (float)(i % 16);
  OK(flhal_copy(stream, a[1], number(in), sizeof in, 0));
  OK(flhal_copy(stream, a[2], number(in), sizeof in, 0));
  set_call(&call, FLHAL_OP_ADD, t, 2);
  result = t[0];
  result.sizes = inferred;
  result.strides = inferred + 16;
  OK(flhal_op_infer(&call, &result));
  MUST(result.rank == 2 && inferred[0] == 4 && inferred[1] == N / 4 && inferred[17] == 1 && result.dtype == FLHAL_F32);
  OK(flhal_op_route(device, &call, &route, &reason));
  MUST(route >= FLHAL_ROUTE_NATIVE && route <= FLHAL_ROUTE_HOST);
  OK(flhal_op_run(stream, &call));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < N; ++i) MUST(out[i] == 2 * in[i]);
  alpha.key = FLHAL_ATTR_ADD_ALPHA;
  alpha.kind = FLHAL_ATTR_FLOAT;
  alpha.v.f = 3;
  call.attrs = &alpha;
  call.n_attrs = 1;
  call.attr_stride = sizeof alpha;
  OK(flhal_op_run(stream, &call));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < N; ++i) MUST(out[i] == 4 * in[i]);
  set_call(&call, flhal_op_find("softmax"), t, 1);
  MUST(call.op == FLHAL_OP_SOFTMAX);
  OK(flhal_op_run(stream, &call));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < N / 4; ++i) sum += out[i];
  MUST(sum > 0.999f && sum < 1.001f);
  call.struct_type = 11;
  MUST(flhal_op_run(stream, &call) == FLHAL_E_INVALID);
  printf("ops: ok, add is %s\n", routes[route]);
}

static void vendor_op(flhal_addr a[3]) {
  const char* step = "vendor op";
  const int64_t sizes[1] = {4}, strides[1] = {1};
  flhal_tensor t[2];
  flhal_op_call call;
  float in[4] = {1, 2, 3, 4}, out[4];
  int i;
  memset(t, 0, sizeof t);
  for (i = 0; i < 2; ++i) {
    t[i].address = a[i];
    t[i].sizes = sizes;
    t[i].strides = strides;
    t[i].rank = 1;
    t[i].dtype = FLHAL_F32;
  }
  set_call(&call, 0, t, 1);
  call.name = "frozen.double";
  OK(flhal_copy(stream, a[1], number(in), sizeof in, 0));
  OK(flhal_op_run(stream, &call));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < 4; ++i) MUST(out[i] == 2 * in[i]);
  printf("vendor op: ok\n");
}

static void modules(flhal_addr a[3], int has_dialect) {
  const char* step = "modules";
  flhal_module* module = NULL;
  flhal_function* function = NULL;
  flhal_kernel_arg args[3];
  const uint64_t groups[3] = {N / 64, 1, 1};
  const uint32_t group_size[3] = {64, 1, 1};
  const float factor = 0.5f;
  float in[N], out[N];
  int i;
  MUST(flhal_module_load(device, "no-such-dialect", "x", 1, NULL, &module) < 0);
  if (!has_dialect) {
    printf("modules: ok, none of this chip\n");
    return;
  }
  for (i = 0; i < N; ++i) in[i] = (float)i;
  OK(flhal_copy(stream, a[1], number(in), sizeof in, 0));
  OK(flhal_module_load(device, "frozen-1", "scale", 5, NULL, &module));
  OK(flhal_function_get(module, "scale", &function));
  memset(args, 0, sizeof args);
  for (i = 0; i < 2; ++i) {
    args[i].kind = FLHAL_KERNEL_ARG_MEMORY;
    args[i].address = a[i];
  }
  args[2].kind = FLHAL_KERNEL_ARG_VALUE;
  args[2].size = 4;
  args[2].value = &factor;
  OK(flhal_launch(stream, function, groups, group_size, args, 3));
  OK(flhal_copy(stream, number(out), a[0], sizeof out, 0));
  OK(flhal_stream_synchronize(stream));
  for (i = 0; i < N; ++i) MUST(out[i] == in[i] * 0.5f);
  OK(flhal_module_release(module));
  printf("modules: ok, launched\n");
}

static void reports(void) {
  const char* step = "reports";
  static const char* const names[] = {"load", "devices", "fallback", "routes", "memory", "config", "ops"};
  uint64_t ticket = 0, length = 0;
  uint32_t outer = 0;
  size_t i;
  OK(flhal_scope_enter("frozen", &outer));
  flhal_scope_leave(outer);
  OK(flhal_fallback_push("auto", NULL));
  OK(flhal_fallback_enter(device, "frozen_op", "to be seen in a report", &ticket));
  OK(flhal_fallback_leave(ticket, 16, 32, "app.c:1"));
  OK(flhal_fallback_pop());
  for (i = 0; i < sizeof names / sizeof *names; ++i) {
    length = 0;
    OK(flhal_report(names[i], count_text, &length));
    MUST(length > 2);
  }
  OK(flhal_report_reset("fallback"));
  OK(flhal_config_set("log_level", "error"));
  length = 0;
  OK(flhal_config_get("log_level", count_text, &length));
  MUST(length == 5);
  MUST(flhal_config_set("no_such_setting", "1") == FLHAL_E_INVALID);
  printf("reports: ok\n");
}

int main(int argc, char** argv) {
  const char* step = "end";
  flhal_device_info info;
  flhal_addr a[3] = {0, 0, 0};
  int i, frozen;
  if (argc != 2) return fprintf(stderr, "usage: app CHIP\n"), 2;
  load(argv[1], &info);
  frozen = strcmp(info.plugin, "frozen") == 0;
  memory(a);
  streams(a);
  ops(a);
  if (frozen) vendor_op(a);
  modules(a, frozen);
  reports();
  for (i = 0; i < 3; ++i) OK(flhal_free(a[i]));
  OK(flhal_memory_trim(device));
  OK(flhal_shutdown());
  MUST(flhal_device_open(device) == FLHAL_E_INVALID);
  printf("end: ok\n");
  return 0;
}
