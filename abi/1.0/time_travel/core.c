/* core.c: what core 1.0 does with a plugin, frozen with its headers: opens the library, agrees on a minor, takes the table by
 * the size rules of 1.0, and uses every slot it finds. A plugin of today must still work under it.
 *
 * Usage: core PLUGIN.so       One line for each step; exit status 1 and what was wrong at the first that is. Every struct that a
 * plugin writes has a guard behind its 1.0 size. */
#include <dlfcn.h>
#include <flhal/ops.h>
#include <flhal/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 256, GUARD = 256 };

static char last_text[4096];
static void wrong(const char* step, const char* what, long answer) {
  printf("%s: WRONG: %s (%ld); the plugin said: %s\n", step, what, answer, last_text);
  exit(1);
}
#define MUST(condition) \
  do { if (!(condition)) wrong(step, #condition, 0); } while (0)
#define OK(call) \
  do { flhal_status answer_ = (call); if (answer_ != FLHAL_OK) wrong(step, #call, answer_); } while (0)

static void host_log(int32_t level, const char* text) { (void)level; (void)text; }
static void host_set_error(flhal_status status, int64_t code, const char* text) {
  (void)status;
  (void)code;
  snprintf(last_text, sizeof last_text, "%s", text);
}
static void* host_alloc(uint64_t bytes, uint64_t align) {
  void* p = NULL;
  if (align < sizeof p) align = sizeof p;
  return posix_memalign(&p, align, bytes ? bytes : 1) == 0 ? p : NULL;
}
static void host_free(void* p) { free(p); }
static void host_notify(uint64_t token, flhal_status status) { (void)token; (void)status; }
static const char* host_config(const char* key) { (void)key; return NULL; }
static uint64_t host_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static const flhal_host_v1 host = {sizeof(flhal_host_v1), FLHAL_ST_HOST, NULL, FLHAL_PLUGIN_ABI_MINOR, 0,
                                   host_log, host_set_error, host_alloc, host_free, host_notify, host_config, host_now_ns};

static void set_guard(void* behind) { memset(behind, 0xa5, GUARD); }
static int guard_holds(const void* behind) {
  int i;
  for (i = 0; i < GUARD; ++i)
    if (((const unsigned char*)behind)[i] != 0xa5) return 0;
  return 1;
}

static flhal_plugin_table_v1 table;      /* this core's own copy: what the plugin lacks stays NULL */
static flhal_ops_v1 ops;
static flhal_p_plugin* plugin;
static flhal_p_device* device;

static void take(const char* step, void* ours, size_t size, const void* theirs, int plugin_is_newer) {
  const flhal_link_v1* head = theirs;
  const unsigned char* bytes = theirs;
  uint32_t i;
  MUST(head->struct_type == ((flhal_link_v1*)ours)->struct_type && head->struct_size >= 16 + 8 && head->struct_size < 65536);
  MUST(flhal_needed_extension(head->next) == 0);
  if (!plugin_is_newer)
    for (i = (uint32_t)size; i < head->struct_size; ++i) MUST(bytes[i] == 0);
  memcpy(ours, theirs, head->struct_size < size ? head->struct_size : size);
}

static void load(const char* path) {
  const char* step = "load";
  struct { flhal_plugin_info_v1 value; unsigned char guard[GUARD]; } info;
  const void* their_ops;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  flhal_plugin_v1_fn entry;
  flhal_init_v1 start;
  uint32_t minor;
  if (library == NULL) snprintf(last_text, sizeof last_text, "%s", dlerror());
  MUST(library != NULL);
  *(void**)&entry = dlsym(library, "flhal_plugin_v1");
  MUST(entry != NULL);
  memset(&info.value, 0, sizeof info.value);
  set_guard(info.guard);
  info.value.struct_size = sizeof info.value;
  info.value.struct_type = FLHAL_ST_PLUGIN_INFO;
  OK(entry(&host, &info.value));
  MUST(guard_holds(info.guard) && info.value.id != NULL && info.value.table != NULL);
  MUST(info.value.oldest_host_minor <= FLHAL_PLUGIN_ABI_MINOR);
  minor = 0;                                          /* the one this core knows, and a newer plugin too */
  table.struct_type = FLHAL_ST_TABLE;
  take(step, &table, sizeof table, info.value.table, info.value.abi_minor > FLHAL_PLUGIN_ABI_MINOR);
  MUST(table.init && table.shutdown && table.device_count && table.device_info && table.device_open && table.device_close &&
       table.memory_alloc && table.memory_free && table.copy && table.fill);
  their_ops = info.value.optional_table ? info.value.optional_table("ops", 0) : NULL;
  ops.struct_type = FLHAL_ST_OPS;
  if (their_ops != NULL) take(step, &ops, sizeof ops, their_ops, info.value.abi_minor > FLHAL_PLUGIN_ABI_MINOR);
  memset(&start, 0, sizeof start);
  start.struct_size = sizeof start;
  start.struct_type = FLHAL_ST_INIT;
  start.negotiated_minor = minor;
  OK(table.init(&host, &start, &plugin));
  printf("load: ok, %s %s, minor 1.%u of its 1.%u\n", info.value.id, info.value.version, minor, info.value.abi_minor);
}

static void open_device(void) {
  const char* step = "device";
  struct { flhal_p_device_info_v1 value; unsigned char guard[GUARD]; } info;
  uint32_t count = 0;
  OK(table.device_count(plugin, &count));
  MUST(count >= 1);
  memset(&info.value, 0, sizeof info.value);
  set_guard(info.guard);
  info.value.struct_size = sizeof info.value;
  info.value.struct_type = FLHAL_ST_DEVICE_INFO;
  OK(table.device_info(plugin, 0, &info.value));
  MUST(guard_holds(info.guard) && info.value.chip != NULL && info.value.memory_bytes > 0);
  OK(table.device_open(plugin, 0, &device));
  MUST(device != NULL);
  printf("device: ok, %s\n", info.value.chip);
}

static flhal_p_slab_v1 slab(const char* step) {
  struct { flhal_p_slab_v1 value; unsigned char guard[GUARD]; } s;
  memset(&s.value, 0, sizeof s.value);
  set_guard(s.guard);
  s.value.struct_size = sizeof s.value;
  s.value.struct_type = FLHAL_ST_SLAB;
  s.value.bytes = 65536;
  s.value.align = 256;
  OK(table.memory_alloc(device, &s.value));
  MUST(guard_holds(s.guard) && s.value.memory != NULL);
  return s.value;
}

static void copy(const char* step, flhal_p_stream* stream, flhal_p_place dst, flhal_p_place src, uint64_t bytes) {
  flhal_p_copy_v1 c;
  memset(&c, 0, sizeof c);
  c.struct_size = sizeof c;
  c.struct_type = FLHAL_ST_COPY;
  c.dst = dst;
  c.src = src;
  c.bytes = bytes;
  c.rows = 1;
  OK(table.copy(device, stream, &c));
}
static flhal_p_place on_chip(flhal_p_memory* memory, uint64_t offset) {
  flhal_p_place p = {0, 0, 0};
  p.memory = memory;
  p.offset = offset;
  return p;
}
static flhal_p_place on_host(void* host_pointer) {
  flhal_p_place p = {0, 0, 0};
  p.host = host_pointer;
  return p;
}

static void memory(flhal_p_memory* m) {
  const char* step = "memory";
  float in[N], out[N];
  const uint32_t pattern = 0x01020304;
  flhal_p_place place = on_chip(m, 4096);
  void* view = NULL;
  uint64_t free_bytes = 0, total = 0;
  int i;
  for (i = 0; i < N; ++i) in[i] = (float)i;
  copy(step, NULL, on_chip(m, 0), on_host(in), sizeof in);
  copy(step, NULL, on_chip(m, 2048), on_chip(m, 0), sizeof in);
  copy(step, NULL, on_host(out), on_chip(m, 2048), sizeof out);
  MUST(memcmp(in, out, sizeof in) == 0);
  OK(table.fill(device, NULL, &place, sizeof in, &pattern, 4));
  copy(step, NULL, on_host(out), place, sizeof out);
  MUST(memcmp(&out[N - 1], &pattern, 4) == 0);
  if (table.host_begin != NULL) {
    OK(table.host_begin(device, &place, 64, FLHAL_READ | FLHAL_WRITE, &view));
    MUST(memcmp(view, &pattern, 4) == 0);
    memset(view, 7, 64);
    OK(table.host_end(device, &place, 64, FLHAL_READ | FLHAL_WRITE, view));
    copy(step, NULL, on_host(out), place, 64);
    MUST(((char*)out)[63] == 7);
  }
  if (table.memory_budget != NULL) {
    OK(table.memory_budget(device, &free_bytes, &total));
    MUST(free_bytes <= total);
  }
  printf("memory: ok\n");
}

static void streams(flhal_p_memory* m) {
  const char* step = "streams";
  flhal_p_stream* stream = NULL;
  flhal_p_event *from = NULL, *to = NULL;
  uint64_t ns = 0;
  float in[N], out[N];
  int i;
  if (table.stream_create == NULL) {
    printf("streams: ok, none\n");
    return;
  }
  for (i = 0; i < N; ++i) in[i] = (float)-i;
  OK(table.stream_create(device, 0, 0, &stream));
  OK(table.event_create(device, FLHAL_EVENT_TIMING, &from));
  OK(table.event_create(device, FLHAL_EVENT_TIMING, &to));
  OK(table.event_record(from, stream));
  copy(step, stream, on_chip(m, 0), on_host(in), sizeof in);
  OK(table.event_record(to, stream));
  OK(table.event_wait(to, stream));
  copy(step, stream, on_host(out), on_chip(m, 0), sizeof out);
  OK(table.event_synchronize(to));
  OK(table.stream_synchronize(stream));
  OK(table.event_query(to));
  OK(table.stream_query(stream));
  OK(table.event_elapsed_ns(from, to, &ns));
  MUST(memcmp(in, out, sizeof in) == 0);
  table.event_destroy(from);
  table.event_destroy(to);
  table.stream_destroy(stream);
  printf("streams: ok\n");
}

/* add, softmax and matmul of small float32 matrices: each is planned, and run when the plugin takes it. */
static int op(flhal_p_slab_v1* s, uint32_t number, const char* name, uint32_t n_inputs) {
  const char* step = "ops";
  const int64_t sizes[2] = {16, 16}, strides[2] = {16, 1};
  flhal_tensor_v1 t[4];
  flhal_op_call_v1 call;
  struct { flhal_plan_info_v1 value; unsigned char guard[GUARD]; } info;
  uint16_t wanted[4] = {0, 0, 0, 0};
  flhal_p_plan* plan = NULL;
  flhal_p_slab_v1 room;
  flhal_p_place workspace;
  flhal_status answer;
  float a[N], b[N], out[N], expected;
  uint32_t i, k;
  memset(t, 0, sizeof t);
  memset(&call, 0, sizeof call);
  for (i = 0; i <= n_inputs; ++i) {
    t[i].memory = s->memory;
    t[i].offset = 2048 * i;
    t[i].address = s->address ? s->address + t[i].offset : 0;
    t[i].extent = sizeof a;
    t[i].sizes = sizes;
    t[i].strides = strides;
    t[i].dtype = FLHAL_F32;
    t[i].rank = 2;
  }
  if (number == FLHAL_OP_MATMUL) {         /* its third input is optional */
    memset(&t[3], 0, sizeof t[3]);
    t[3].flags = FLHAL_TENSOR_ABSENT;
  }
  for (i = 0; i < N; ++i) {
    a[i] = (float)(i % 5);
    b[i] = (float)(i % 3);
  }
  copy(step, NULL, on_chip(s->memory, 2048), on_host(a), sizeof a);
  copy(step, NULL, on_chip(s->memory, 4096), on_host(b), sizeof b);
  call.struct_size = sizeof call;
  call.struct_type = FLHAL_ST_OP_CALL;
  call.op = number;
  call.name = name;
  call.tensors = t;
  call.tensor_stride = sizeof *t;
  call.n_outputs = 1;
  call.n_inputs = n_inputs;
  call.compute_dtype = FLHAL_F32;
  memset(&info.value, 0, sizeof info.value);
  set_guard(info.guard);
  info.value.struct_size = sizeof info.value;
  info.value.struct_type = FLHAL_ST_PLAN_INFO;
  info.value.wanted_layouts = wanted;
  info.value.n_wanted = n_inputs + 1;
  answer = ops.plan_create(device, &call, &info.value, &plan);
  MUST(guard_holds(info.guard));
  if (answer == FLHAL_DECLINED) return 0;
  OK(answer);
  workspace = on_chip(NULL, 0);
  if (info.value.workspace_bytes) {
    MUST(info.value.workspace_bytes <= 65536);
    room = slab(step);
    workspace = on_chip(room.memory, 0);
  }
  OK(ops.plan_run(plan, NULL, &call, workspace.memory ? &workspace : NULL));
  copy(step, NULL, on_host(out), on_chip(s->memory, 0), sizeof out);
  for (i = 0; i < N && number != FLHAL_OP_SOFTMAX; ++i) {
    expected = 0;
    if (number == FLHAL_OP_ADD) expected = a[i] + b[i];
    else
      for (k = 0; k < 16; ++k) expected += a[i / 16 * 16 + k] * b[k * 16 + i % 16];
    MUST(out[i] == expected);
  }
  if (number == FLHAL_OP_SOFTMAX) {
    expected = 0;
    for (i = 0; i < 16; ++i) expected += out[i];
    MUST(expected > 0.999f && expected < 1.001f);
  }
  ops.plan_destroy(plan);
  if (workspace.memory) table.memory_free(device, workspace.memory);
  return 1;
}

static void run_ops(flhal_p_slab_v1* s) {
  const char* step = "ops";
  int taken;
  if (ops.plan_create == NULL) {
    printf("ops: ok, none\n");
    return;
  }
  taken = op(s, FLHAL_OP_ADD, "add", 2) + op(s, FLHAL_OP_SOFTMAX, "softmax", 1) + op(s, FLHAL_OP_MATMUL, "matmul", 3);
  MUST(taken > 0);
  printf("ops: ok, %d of 3\n", taken);
}

int main(int argc, char** argv) {
  flhal_p_slab_v1 s;
  if (argc != 2) return fprintf(stderr, "usage: core PLUGIN.so\n"), 2;
  load(argv[1]);
  open_device();
  s = slab("memory");
  memory(s.memory);
  streams(s.memory);
  run_ops(&s);
  table.memory_free(device, s.memory);
  table.device_close(device);
  table.shutdown(plugin);
  printf("end: ok\n");
  return 0;
}
