/* plugin.c: a plugin of ABI 1.0, frozen with its headers: what a maker shipped once and never builds again.
 *
 * All 29 slots and the table "ops", on a piece of the heap that nobody else can see. Everything finishes before it returns; a
 * stream only counts. Native: add of dense float32 without attributes, and the vendor op frozen.double. A module is the text
 * "scale", a function is called scale: out[i] = in[i] * factor. */
#include <flhal/ops.h>
#include <flhal/plugin.h>
#include <string.h>
#include <time.h>

struct flhal_p_plugin { const flhal_host_v1* host; };
struct flhal_p_device { flhal_p_plugin* plugin; };
struct flhal_p_memory { char* bytes; };
struct flhal_p_stream { flhal_p_device* device; uint64_t work; };
struct flhal_p_event { flhal_p_device* device; uint64_t at_ns; };
struct flhal_p_module { flhal_p_device* device; int function; };
struct flhal_p_plan { int op; const flhal_host_v1* host; };

static const flhal_host_v1* the_host;

static flhal_status refuse(flhal_status status, const char* text) {
  the_host->set_error(status, 0, text);
  return status;
}

static void* make(uint64_t bytes) {
  void* p = the_host->alloc(bytes, 64);
  if (p) memset(p, 0, bytes);
  return p;
}

static flhal_status init(const flhal_host_v1* host, const flhal_init_v1* in, flhal_p_plugin** out) {
  the_host = host;
  if (in->negotiated_minor != 0) return refuse(FLHAL_E_ABI, "frozen: only the minor 1.0 can have been agreed on");
  if (flhal_needed_extension(in->next)) return refuse(FLHAL_E_UNSUPPORTED, "frozen: init needs an extension that this plugin does not know");
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->host = host;
  return FLHAL_OK;
}
static void shutdown_(flhal_p_plugin* plugin) { the_host->free(plugin); }

static flhal_status device_count(flhal_p_plugin* plugin, uint32_t* out) {
  (void)plugin;
  *out = 1;
  return FLHAL_OK;
}
static flhal_status device_info(flhal_p_plugin* plugin, uint32_t i, flhal_p_device_info_v1* out) {
  (void)plugin;
  if (i != 0) return refuse(FLHAL_E_INVALID, "frozen: there is one chip");
  memcpy(out->uuid, "frozen-chip-1.0!", 16);
  out->chip = "frozen";
  out->product = "Frozen chip";
  out->vendor = "Example";
  out->driver = "1.0";
  out->compute_capability = "1.0";
  out->fingerprint = "1";
  out->dialects = "frozen-1";
  out->memory_bytes = 256u << 20;
  out->largest_slab_bytes = 64u << 20;
  out->slab_alignment = 256;
  out->queues = 1;
  out->device_class = FLHAL_DEVICE_CLASS_MOCK;
  return FLHAL_OK;
}
static flhal_status device_open(flhal_p_plugin* plugin, uint32_t i, flhal_p_device** out) {
  if (i != 0) return refuse(FLHAL_E_INVALID, "frozen: there is one chip");
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->plugin = plugin;
  return FLHAL_OK;
}
static void device_close(flhal_p_device* device) { the_host->free(device); }

static flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  (void)device;
  if (flhal_needed_extension(slab->next)) return refuse(FLHAL_E_UNSUPPORTED, "frozen: memory_alloc needs an extension that this plugin does not know");
  if (slab->kind != FLHAL_MEM_DEVICE) return refuse(FLHAL_E_UNSUPPORTED, "frozen: this chip has device memory only");
  if (slab->bytes > (64u << 20)) return FLHAL_EXHAUSTED;
  slab->memory = make(sizeof *slab->memory);
  if (slab->memory == NULL) return FLHAL_E_HOST_MEMORY;
  slab->memory->bytes = the_host->alloc(slab->bytes, slab->align > 256 ? slab->align : 256);
  if (slab->memory->bytes) return FLHAL_OK;
  the_host->free(slab->memory);
  slab->memory = NULL;
  return FLHAL_EXHAUSTED;
}
static void memory_free(flhal_p_device* device, flhal_p_memory* memory) {
  (void)device;
  the_host->free(memory->bytes);
  the_host->free(memory);
}
static char* at(const flhal_p_place* place) { return place->memory ? place->memory->bytes + place->offset : (char*)place->host; }
static void count(flhal_p_stream* stream) {
  if (stream) ++stream->work;
}
static flhal_status copy(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_copy_v1* c) {
  uint64_t row;
  (void)device;
  if (flhal_needed_extension(c->next)) return refuse(FLHAL_E_UNSUPPORTED, "frozen: copy needs an extension that this plugin does not know");
  for (row = 0; row < c->rows; ++row) memmove(at(&c->dst) + row * c->dst_pitch, at(&c->src) + row * c->src_pitch, c->bytes);
  count(stream);
  return FLHAL_OK;
}
static flhal_status fill(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_place* place, uint64_t bytes, const void* pattern,
                         uint32_t pattern_bytes) {
  uint64_t done;
  (void)device;
  for (done = 0; done < bytes; done += pattern_bytes) memcpy(at(place) + done, pattern, pattern_bytes);
  count(stream);
  return FLHAL_OK;
}

static flhal_status module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  if (strcmp(source->dialect, "frozen-1") != 0) return refuse(FLHAL_E_UNSUPPORTED, "frozen: the dialect is frozen-1");
  if (source->bytes < 5 || memcmp(source->data, "scale", 5) != 0) return refuse(FLHAL_E_BUILD, "frozen: the only text is scale");
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->device = device;
  return FLHAL_OK;
}
static void module_unload(flhal_p_module* module) { the_host->free(module); }
static flhal_status function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  if (strcmp(name, "scale") != 0) return refuse(FLHAL_E_NOT_FOUND, "frozen: the only function is scale");
  *out = (flhal_p_function*)module;
  return FLHAL_OK;
}
static const flhal_p_arg* argument(const flhal_p_launch_v1* l, uint32_t i) {
  return (const flhal_p_arg*)((const char*)l->args + (uint64_t)i * l->arg_stride);
}
static flhal_status launch(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_launch_v1* l) {
  float factor;
  float *out, *in;
  uint64_t i;
  (void)device;
  if (flhal_needed_extension(l->next)) return refuse(FLHAL_E_UNSUPPORTED, "frozen: launch needs an extension that this plugin does not know");
  if (l->n_args != 3 || argument(l, 0)->kind != FLHAL_ARG_MEMORY || argument(l, 1)->kind != FLHAL_ARG_MEMORY || argument(l, 2)->size != 4)
    return refuse(FLHAL_E_INVALID, "frozen: scale takes out, in and a factor");
  out = (float*)(argument(l, 0)->memory->bytes + argument(l, 0)->offset);
  in = (float*)(argument(l, 1)->memory->bytes + argument(l, 1)->offset);
  memcpy(&factor, argument(l, 2)->value, 4);
  for (i = 0; i < l->groups[0] * l->group_size[0]; ++i) out[i] = in[i] * factor;
  count(stream);
  return FLHAL_OK;
}

static flhal_status memory_budget(flhal_p_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  (void)device;
  *free_bytes = *total_bytes = 256u << 20;
  return FLHAL_OK;
}
static flhal_status host_begin(flhal_p_device* device, const flhal_p_place* place, uint64_t bytes, uint32_t access, void** host) {
  (void)device;
  *host = the_host->alloc(bytes, 64);
  if (*host == NULL) return FLHAL_E_HOST_MEMORY;
  if (!(access & FLHAL_DISCARD)) memcpy(*host, at(place), bytes);
  return FLHAL_OK;
}
static flhal_status host_end(flhal_p_device* device, const flhal_p_place* place, uint64_t bytes, uint32_t access, void* host) {
  (void)device;
  if (access & FLHAL_WRITE) memcpy(at(place), host, bytes);
  the_host->free(host);
  return FLHAL_OK;
}

static flhal_status stream_create(flhal_p_device* device, int32_t priority, uint32_t flags, flhal_p_stream** out) {
  (void)priority;
  (void)flags;
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->device = device;
  return FLHAL_OK;
}
static void stream_destroy(flhal_p_stream* stream) { the_host->free(stream); }
static flhal_status stream_done(flhal_p_stream* stream) {
  (void)stream;
  return FLHAL_OK;
}
static flhal_status event_create(flhal_p_device* device, uint32_t flags, flhal_p_event** out) {
  (void)flags;
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->device = device;
  return FLHAL_OK;
}
static void event_destroy(flhal_p_event* event) { the_host->free(event); }
static flhal_status event_record(flhal_p_event* event, flhal_p_stream* stream) {
  count(stream);
  event->at_ns = the_host->now_ns();
  return FLHAL_OK;
}
static flhal_status event_wait(flhal_p_event* event, flhal_p_stream* stream) {
  (void)event;
  count(stream);
  return FLHAL_OK;
}
static flhal_status event_done(flhal_p_event* event) {
  (void)event;
  return FLHAL_OK;
}
static flhal_status event_elapsed_ns(flhal_p_event* from, flhal_p_event* to, uint64_t* out) {
  *out = to->at_ns - from->at_ns;
  return FLHAL_OK;
}

static const flhal_tensor_v1* tensor(const flhal_op_call_v1* call, uint32_t i) {
  return (const flhal_tensor_v1*)((const char*)call->tensors + (uint64_t)i * call->tensor_stride);
}
static int is_dense_f32(const flhal_tensor_v1* t, uint64_t* elements) {
  uint32_t d;
  *elements = 1;
  for (d = t->rank; d-- > 0;) {
    if (t->sizes[d] != 1 && t->strides[d] != (int64_t)*elements) return 0;
    *elements *= (uint64_t)t->sizes[d];
  }
  return t->dtype == FLHAL_F32 && t->layout == 0 && !(t->flags & (FLHAL_TENSOR_ABSENT | FLHAL_TENSOR_HOST_SCALAR));
}
enum { PLAN_ADD = 1, PLAN_DOUBLE };
static flhal_status plan_create(flhal_p_device* device, const flhal_op_call_v1* proto, flhal_plan_info_v1* info, flhal_p_plan** out) {
  uint64_t n[3];
  uint32_t i;
  int op = proto->op == FLHAL_OP_ADD ? PLAN_ADD : proto->op == 0 && strcmp(proto->name, "frozen.double") == 0 ? PLAN_DOUBLE : 0;
  const uint32_t tensors = op == PLAN_ADD ? 3 : 2;
  (void)device;
  info->reason = "frozen: add of dense float32 without attributes, or frozen.double";
  if (!op || proto->n_attrs || flhal_needed_extension(proto->next) || proto->n_outputs + proto->n_inputs != tensors) return FLHAL_DECLINED;
  for (i = 0; i < tensors; ++i)
    if (!is_dense_f32(tensor(proto, i), &n[i]) || n[i] != n[0]) return FLHAL_DECLINED;
  info->depends_on = FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES;
  info->reason = NULL;
  *out = make(sizeof **out);
  if (*out == NULL) return FLHAL_E_HOST_MEMORY;
  (*out)->op = op;
  return FLHAL_OK;
}
static flhal_status plan_run(flhal_p_plan* plan, flhal_p_stream* stream, const flhal_op_call_v1* call, const flhal_p_place* workspace) {
  float* p[3];
  uint64_t i, n;
  (void)workspace;
  for (i = 0; i < (plan->op == PLAN_ADD ? 3u : 2u); ++i) p[i] = (float*)(tensor(call, (uint32_t)i)->memory->bytes + tensor(call, (uint32_t)i)->offset);
  is_dense_f32(tensor(call, 0), &n);
  for (i = 0; i < n; ++i) p[0][i] = plan->op == PLAN_ADD ? p[1][i] + p[2][i] : p[1][i] * 2;
  count(stream);
  return FLHAL_OK;
}
static void plan_destroy(flhal_p_plan* plan) { the_host->free(plan); }
static flhal_status op_describe(flhal_p_plugin* plugin, uint32_t i, const char** name, const char** schema) {
  (void)plugin;
  if (i != 0) return FLHAL_DECLINED;
  *name = "frozen.double";
  *schema = "(out; x)";
  return FLHAL_OK;
}

static const flhal_ops_v1 ops = {sizeof(flhal_ops_v1), FLHAL_ST_OPS, NULL, FLHAL_OP_SET_MINOR, 0, plan_create, plan_run, plan_destroy, op_describe};
static const flhal_plugin_table_v1 table = {
    sizeof(flhal_plugin_table_v1), FLHAL_ST_TABLE, NULL,
    init, shutdown_, device_count, device_info, device_open, device_close, memory_alloc, memory_free, copy, fill,
    module_load, module_unload, function_get, launch, memory_budget, host_begin, host_end,
    stream_create, stream_destroy, stream_done, stream_done,
    event_create, event_destroy, event_record, event_wait, event_done, event_done, event_elapsed_ns, NULL};
static const void* optional_table(const char* name, uint32_t oldest) {
  (void)oldest;
  return strcmp(name, "ops") == 0 ? &ops : NULL;
}

flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  (void)host;
  out->abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  out->oldest_host_minor = 0;
  out->id = "frozen";
  out->version = "1.0.0";
  out->build_id = "frozen-1.0.0";
  out->vendor = "Example";
  out->flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
  out->table = &table;
  out->optional_table = optional_table;
  return FLHAL_OK;
}
