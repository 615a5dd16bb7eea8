/* flhal/plugin.h: the vendor ABI, version 1 (not frozen yet). C99, LP64, little endian.
 * Nothing here needs libflhal at link time; a plugin exports ONE symbol, flhal_plugin_v1.
 *
 * House rules, true for every slot below unless its comment says otherwise:
 *  - Pointers passed in are valid only DURING the call. Keep what you need by copying it.
 *  - Handles returned by a plugin belong to the plugin and live until their destroy slot returns.
 *    Core never destroys a handle while work that uses it is unfinished (deferred release).
 *  - `stream == NULL` means: finish before returning. A plugin without stream slots only sees NULL.
 *  - Core never calls two slots with the same stream at once, never calls anything after shutdown
 *    has begun, and calls no slot at all in a forked child.
 *  - Slots on different objects may run at once, from any thread, unless FLHAL_PLUGIN_SERIALIZE_ALL.
 *  - No exception, longjmp or exit crosses the boundary. Do not change the FP environment, the
 *    locale or signal handlers; block signals in threads you create.
 *  - Before returning a negative status call host->set_error. Positive answers carry no text.
 *  - Input structs: read min(struct_size, yours); a short tail is zero. Output structs: write
 *    min(struct_size, yours) and nothing past it. Zero always means "default" or "unknown". */
#ifndef FLHAL_PLUGIN_H
#define FLHAL_PLUGIN_H
#include <flhal/scalars.h>
#ifdef __cplusplus
extern "C" {
#endif

#define FLHAL_PLUGIN_ABI_MAJOR 1u
#define FLHAL_PLUGIN_ABI_MINOR 0u

#define FLHAL_ST_HOST 1u                   /* struct_type. High bit set on something hung on `next`  */
#define FLHAL_ST_INIT 2u                   /* = refuse when unknown; clear = ignore when unknown     */
#define FLHAL_ST_PLUGIN_INFO 3u
#define FLHAL_ST_TABLE 4u
#define FLHAL_ST_DEVICE_INFO 5u
#define FLHAL_ST_SLAB 6u
#define FLHAL_ST_COPY 7u
#define FLHAL_ST_SOURCE 8u
#define FLHAL_ST_LAUNCH 9u
#define FLHAL_ST_OP_CALL 10u
#define FLHAL_ST_PLAN_INFO 11u
#define FLHAL_ST_OPS 12u
typedef struct flhal_link_v1 { uint32_t struct_size, struct_type; const void* next; } flhal_link_v1;  /* FROZEN head */
/* What a plugin that knows no extension does with a struct's `next`: 0 = ignore them all; else the struct_type of
 * the first one that may not be ignored, and the slot answers FLHAL_E_UNSUPPORTED. */
static inline uint32_t flhal_needed_extension(const void* next) {
  const flhal_link_v1* link = (const flhal_link_v1*)next;
  for (; link; link = (const flhal_link_v1*)link->next)
    if (link->struct_type >> 31) return link->struct_type;
  return 0;
}
typedef struct flhal_p_plugin   flhal_p_plugin;     /* all eight are the plugin's own types          */
typedef struct flhal_p_device   flhal_p_device;
typedef struct flhal_p_memory   flhal_p_memory;     /* one slab                                      */
typedef struct flhal_p_stream   flhal_p_stream;
typedef struct flhal_p_event    flhal_p_event;
typedef struct flhal_p_module   flhal_p_module;
typedef struct flhal_p_function flhal_p_function;
typedef struct flhal_p_plan     flhal_p_plan;

/* ---- what core gives the plugin -------------------------------------------------------------- */
typedef struct flhal_host_v1 {             /* lives until shutdown returns; any thread may call     */
  uint32_t struct_size, struct_type; const void* next;
  uint32_t abi_minor, oldest_plugin_minor;
  void        (*log)(int32_t level, const char* text);                    /* never blocks on Python */
  void        (*set_error)(flhal_status, int64_t vendor_code, const char* text);  /* text is copied */
  void*       (*alloc)(uint64_t bytes, uint64_t align);                   /* NULL when out          */
  void        (*free)(void*);
  void        (*notify)(uint64_t token, flhal_status);      /* reports an asynchronous failure       */
  const char* (*config)(const char* key);                   /* NULL when unset; valid until shutdown */
  uint64_t    (*now_ns)(void);                              /* CLOCK_MONOTONIC                       */
} flhal_host_v1;

/* ---- devices ---------------------------------------------------------------------------------- */
#define FLHAL_CAP_ADDRESSES      (1ull << 0)   /* slabs have device addresses kernels can use        */
#define FLHAL_CAP_ADDRESSES_OURS (1ull << 8)   /* ... and they are reserved in this process: no host
                                                  pointer and no other maker can have the same value */
#define FLHAL_CAP_HOST_VISIBLE   (1ull << 1)   /* host_begin returns the memory itself, no copy      */
#define FLHAL_CAP_HOST_COHERENT  (1ull << 2)   /* ... and needs no flush                             */
#define FLHAL_CAP_FP64           (1ull << 3)
#define FLHAL_CAP_INT64          (1ull << 4)
#define FLHAL_CAP_COMPUTE_COPY_OVERLAP (1ull << 5)
#define FLHAL_CAP_EVENT_HOST_SIGNAL    (1ull << 6)   /* streams can wait for event_signal            */
#define FLHAL_CAP_LANES_ARE_CORES      (1ull << 7)   /* schedule hint: CPU-like, few fat lanes       */

#define FLHAL_DEVICE_CLASS_ACCELERATOR 0u
#define FLHAL_DEVICE_CLASS_GPU         1u
#define FLHAL_DEVICE_CLASS_HOST        2u
#define FLHAL_DEVICE_CLASS_CPU_DRIVER  3u   /* a processor behind another driver */
#define FLHAL_DEVICE_CLASS_MOCK        4u

typedef struct flhal_p_device_info_v1 {    /* out; strings live until shutdown                      */
  uint32_t struct_size, struct_type; const void* next;
  uint8_t     uuid[16];                    /* same chip, same value, in every process and boot      */
  const char* chip;                        /* short name users type: [a-z0-9_]+, e.g. "chip_a"       */
  const char* product, *vendor, *driver, *compute_capability, *pci_address;
  const char* fingerprint;                 /* changes when compiled code must be compiled again      */
  const char* dialects;                    /* space list, best first: "opencl-c-1.2 spirv-1.2"       */
  uint64_t    caps, memory_bytes, largest_slab_bytes, slab_alignment;
  uint32_t    queues, preferred_vector_bytes, max_local_bytes, dlpack_device_type;
  const flhal_dtype* storage_dtypes; uint32_t n_storage_dtypes;   /* none given = all of scalars.h       */
  uint32_t    device_class;
} flhal_p_device_info_v1;

/* ---- memory and copies ------------------------------------------------------------------------ */
#define FLHAL_MEM_DEVICE  0u
#define FLHAL_MEM_PINNED  1u               /* host memory the device reads fast                      */
#define FLHAL_MEM_SHARED  2u
typedef struct flhal_p_slab_v1 {           /* in: bytes, align, kind. out: the rest                  */
  uint32_t struct_size, struct_type; const void* next;
  uint64_t bytes, align; uint32_t kind, reserved;
  flhal_p_memory* memory;
  uint64_t address;                        /* device address, 0 without FLHAL_CAP_ADDRESSES          */
  void*    host;                           /* host address, NULL when the host cannot see it         */
} flhal_p_slab_v1;

typedef struct flhal_p_place {             /* FROZEN element, 24 bytes. memory == NULL: host pointer */
  flhal_p_memory* memory; uint64_t offset; void* host;
} flhal_p_place;

typedef struct flhal_p_copy_v1 {           /* rows is 1 or more; > 1: a rectangle, pitches in bytes  */
  uint32_t struct_size, struct_type; const void* next;
  flhal_p_place dst, src;
  uint64_t bytes, rows, dst_pitch, src_pitch;
} flhal_p_copy_v1;                         /* host memory is pinned or outlives the copy: core sees to it */

/* ---- kernels ----------------------------------------------------------------------------------- */
#define FLHAL_ARG_VALUE   1u               /* `size` bytes at `value`                                */
#define FLHAL_ARG_MEMORY  2u               /* slab + offset, or its address when the device has them */
#define FLHAL_ARG_LOCAL   3u               /* `size` bytes of work-group memory                      */
typedef struct flhal_p_arg { uint32_t kind, size; const void* value; flhal_p_memory* memory; uint64_t offset, address; } flhal_p_arg;
typedef struct flhal_p_launch_v1 {
  uint32_t struct_size, struct_type; const void* next;
  flhal_p_function* function;
  uint64_t groups[3]; uint32_t group_size[3]; uint32_t local_bytes;
  const flhal_p_arg* args; uint32_t n_args, arg_stride;
} flhal_p_launch_v1;
typedef struct flhal_p_source_v1 {
  uint32_t struct_size, struct_type; const void* next;
  const char* dialect; const void* data; uint64_t bytes; const char* options;
  char* build_log; uint64_t build_log_capacity;            /* core's buffer; plugin terminates it    */
} flhal_p_source_v1;

/* The dialect "flhal-host-1", for plugins whose chip is this process's own processor: `data` of the source is a
 * flhal_host_module, ready compiled code. module_load keeps the pointer (it lives as long as the process). launch calls
 * run(argv, first, count) for ranges of groups[0] that together cover 0 .. groups[0]-1 once, on any of its threads, in any
 * order; groups[1], groups[2] and group_size are 1. argv[i] points to a value's bytes, or is the memory's host pointer. */
#define FLHAL_DIALECT_HOST "flhal-host-1"
typedef void (*flhal_host_kernel)(const void* const* argv, uint64_t first, uint64_t count);
typedef struct flhal_host_function { const char* name; flhal_host_kernel run; } flhal_host_function;
typedef struct flhal_host_module {
  uint32_t struct_size, n_functions; const flhal_host_function* functions;
} flhal_host_module;

/* ---- operations: the descriptor that has to last ----------------------------------------------- */
/* flags; the same values as in op.h */
#define FLHAL_TENSOR_ABSENT      (1u << 0)   /* optional operand not given; other fields zero        */
#define FLHAL_TENSOR_STABLE      (1u << 1)   /* seen unchanged for several calls: packing may pay    */
#define FLHAL_TENSOR_HOST_SCALAR (1u << 2)   /* rank 0 input: `address` is a HOST pointer to one element, memory is NULL;
                                                read it during the call. In plan_create the value is not yet the real one */
typedef struct flhal_tensor_v1 {           /* 64 bytes; arrays carry a stride, so it may grow        */
  uint64_t        address;                 /* of element [0..0]; 0 when the device has no addresses  */
  flhal_p_memory* memory; uint64_t offset; /* the same place as slab and byte offset: always valid   */
  uint64_t        extent;                  /* bytes from there that belong to this tensor            */
  const int64_t*  sizes;  const int64_t* strides;          /* rank values each; strides in elements  */
  flhal_dtype     dtype;
  uint16_t        rank, layout;            /* layout 0 = strided, else a number this plugin gave out */
  uint32_t        flags, reserved;
} flhal_tensor_v1;

#define FLHAL_ATTR_INT     1u
#define FLHAL_ATTR_FLOAT   2u
#define FLHAL_ATTR_COMPLEX 3u
#define FLHAL_ATTR_INTS    4u
#define FLHAL_ATTR_FLOATS  5u
#define FLHAL_ATTR_STRING  6u
#define FLHAL_ATTR_PHILOX  7u              /* p -> two uint64_t: seed, offset                        */
#define FLHAL_ATTR_DYNAMIC (1u << 0)       /* may change each call: NOT part of a plan's identity    */
typedef struct flhal_attr_v1 {             /* 32 bytes, stride carried                               */
  uint32_t key;                            /* FLHAL_ATTR_<OP>_<NAME>; numbers are never reused       */
  uint16_t kind, flags; uint32_t count, reserved;
  union { int64_t i; double f; const void* p; } v; double imag;
} flhal_attr_v1;

#define FLHAL_ALIAS_NONE 0u                /* outputs share no byte with inputs                      */
#define FLHAL_ALIAS_EXACT 1u               /* an output IS an input, same view (in place)            */
typedef struct flhal_op_call_v1 {          /* anything else, e.g. partial overlap, core resolves     */
  uint32_t struct_size, struct_type; const void* next;
  uint32_t    op, op_version;              /* FLHAL_OP_*; 0 = known only by name                     */
  const char* name;                        /* always set: "relu", "vendor.paged_attention"           */
  const flhal_tensor_v1* tensors;          /* outputs first, then inputs, in the op set's order      */
  const uint32_t* groups;                  /* length of each operand group; NULL = every group is 1  */
  const flhal_attr_v1* attrs;              /* only attributes that differ from their default         */
  uint32_t tensor_stride, n_outputs, n_inputs, n_groups, attr_stride, n_attrs;
  flhal_dtype compute_dtype;               /* arithmetic type; operands convert on load and store    */
  uint32_t alias, flags, reserved;
} flhal_op_call_v1;

#define FLHAL_DEPENDS_SIZES   (1ull << 0)  /* the class key of the design page, section 7: always    */
#define FLHAL_DEPENDS_STRIDES (1ull << 1)
#define FLHAL_DEPENDS_ALIGN   (1ull << 2)
typedef struct flhal_plan_info_v1 {        /* out, except wanted_layouts / n_wanted                  */
  uint32_t struct_size, struct_type; const void* next;
  uint64_t    depends_on;                  /* what of the prototype must match for reuse             */
  uint64_t    workspace_bytes, workspace_align;
  uint64_t    held_bytes;                  /* kept while the plan lives; core's cache budget counts it */
  uint16_t*   wanted_layouts; uint32_t n_wanted;           /* core's zeroed array, one per operand   */
  uint32_t    flags;
  uint64_t    estimate_ns;                 /* 0 = unknown                                            */
  const char* reason;                      /* why DECLINED: static text, shown in reports            */
} flhal_plan_info_v1;

typedef struct flhal_ops_v1 {              /* optional table "ops"                                   */
  uint32_t struct_size, struct_type; const void* next;
  uint32_t op_set_minor, reserved;         /* core never shows a call that needs a newer one         */
  /* Decide on the real call; addresses in `proto` are not yet the real ones, their alignment is.
   * May run on many threads. FLHAL_DECLINED is cheap, final for this identity, and costs no text.   */
  flhal_status (*plan_create)(flhal_p_device*, const flhal_op_call_v1* proto, flhal_plan_info_v1*, flhal_p_plan** out);
  /* A plan is immutable: core may run it on several streams and threads at once, each time with its
   * own workspace (NULL when workspace_bytes == 0). */
  flhal_status (*plan_run)(flhal_p_plan*, flhal_p_stream*, const flhal_op_call_v1*, const flhal_p_place* workspace);
  void         (*plan_destroy)(flhal_p_plan*);
  /* Vendor operations: name and schema (see the end of this file) of number i, or FLHAL_DECLINED past the end. */
  flhal_status (*op_describe)(flhal_p_plugin*, uint32_t i, const char** name, const char** schema);
} flhal_ops_v1;

/* What the host does between host_begin and host_end; the same values as in memory.h. */
#define FLHAL_READ    1u
#define FLHAL_WRITE   2u
#define FLHAL_DISCARD 4u

/* ---- the base table ----------------------------------------------------------------------------- */
#define FLHAL_EVENT_TIMING (1u << 0)
#define FLHAL_EVENT_HOST_SIGNALED (1u << 1)
typedef struct flhal_init_v1 { uint32_t struct_size, struct_type; const void* next; uint32_t negotiated_minor, flags; } flhal_init_v1;

typedef struct flhal_plugin_table_v1 {
  uint32_t struct_size, struct_type; const void* next;
  /* 1..10: every plugin. With these alone every PyTorch model runs. */
  flhal_status (*init)(const flhal_host_v1*, const flhal_init_v1*, flhal_p_plugin** out);
  void         (*shutdown)(flhal_p_plugin*);              /* all handles are gone; join your threads  */
  flhal_status (*device_count)(flhal_p_plugin*, uint32_t* out);       /* fixed until shutdown         */
  flhal_status (*device_info)(flhal_p_plugin*, uint32_t i, flhal_p_device_info_v1* out);
  flhal_status (*device_open)(flhal_p_plugin*, uint32_t i, flhal_p_device** out);  /* first heavy call */
  void         (*device_close)(flhal_p_device*);
  flhal_status (*memory_alloc)(flhal_p_device*, flhal_p_slab_v1* inout);  /* EXHAUSTED when full      */
  void         (*memory_free)(flhal_p_device*, flhal_p_memory*);          /* no work uses it any more */
  flhal_status (*copy)(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1*);
  flhal_status (*fill)(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes);      /* 1, 2, 4, 8 or 16; bytes is a multiple */
  /* 11..14: a plugin with a compiler. With these the whole op set runs on the chip. */
  flhal_status (*module_load)(flhal_p_device*, const flhal_p_source_v1*, flhal_p_module** out);
  void         (*module_unload)(flhal_p_module*);
  flhal_status (*function_get)(flhal_p_module*, const char* name, flhal_p_function** out); /* owned by module */
  flhal_status (*launch)(flhal_p_device*, flhal_p_stream*, const flhal_p_launch_v1*);
  /* 15..17: NULL = core uses device_info and staging copies. */
  flhal_status (*memory_budget)(flhal_p_device*, uint64_t* free_bytes, uint64_t* total_bytes);
  /* Host views. access: FLHAL_READ, FLHAL_WRITE or both; the old bytes are shown, unless FLHAL_DISCARD says that nobody
   * needs them. Work queued before has ended: core waits. After host_end the written bytes are the device's. */
  flhal_status (*host_begin)(flhal_p_device*, const flhal_p_place*, uint64_t bytes, uint32_t access, void** host);
  flhal_status (*host_end)(flhal_p_device*, const flhal_p_place*, uint64_t bytes, uint32_t access,
                           void* host);   /* the pointer host_begin gave: equal ranges may be open twice */
  /* 18..29: all or none (event_signal only with its capability). Present = asynchronous plugin; copy, fill
   * and launch above then honour `stream`.
   * Failures of queued work: stream_query, stream_synchronize and the events recorded behind it answer the first one.
   * There is no slot that clears it. After flhal_stream_clear_error core synchronizes the stream once, and when
   * stream_query still answers a failure it destroys the stream and creates a new one: a plugin may remember the failure
   * as long as the stream lives, or forget it once stream_synchronize has told it. */
  flhal_status (*stream_create)(flhal_p_device*, int32_t priority, uint32_t flags, flhal_p_stream** out);
  void         (*stream_destroy)(flhal_p_stream*);
  flhal_status (*stream_query)(flhal_p_stream*);           /* OK, NOT_READY or the first failure; never blocks */
  flhal_status (*stream_synchronize)(flhal_p_stream*);
  flhal_status (*event_create)(flhal_p_device*, uint32_t flags, flhal_p_event** out);
  void         (*event_destroy)(flhal_p_event*);
  flhal_status (*event_record)(flhal_p_event*, flhal_p_stream*);   /* may be recorded again: the last one counts */
  flhal_status (*event_wait)(flhal_p_event*, flhal_p_stream*);     /* the stream waits, the host does not;
                                                          never recorded = already done; same plugin only */
  flhal_status (*event_query)(flhal_p_event*);
  flhal_status (*event_synchronize)(flhal_p_event*);
  flhal_status (*event_elapsed_ns)(flhal_p_event* from, flhal_p_event* to, uint64_t* out);
  flhal_status (*event_signal)(flhal_p_event*, flhal_status);      /* only with FLHAL_CAP_EVENT_HOST_SIGNAL */
} flhal_plugin_table_v1;

/* ---- the one exported symbol ---------------------------------------------------------------------- */
#define FLHAL_PLUGIN_SERIALIZE_ALL   (1u << 0)   /* one call at a time in the whole plugin             */
#define FLHAL_PLUGIN_FORK_SAFE_PROBE (1u << 1)   /* init + device_count + device_info start no thread and
                                                    open no driver that a fork would break             */
typedef struct flhal_plugin_info_v1 {            /* out; strings and tables are static                 */
  uint32_t struct_size, struct_type; const void* next;
  uint32_t abi_minor, oldest_host_minor;
  const char* id;                                /* "com.example.chip": equal ids are the same plugin   */
  const char* version, *build_id, *vendor;
  uint32_t flags, sanitizer;                     /* sanitizer 0 none, 1 address, 2 thread               */
  const flhal_plugin_table_v1* table;
  const void* (*optional_table)(const char* name, uint32_t oldest_version);  /* "ops", "x.acme.foo"; NULL = none */
} flhal_plugin_info_v1;

/* Pure: no driver, no thread, no allocation that outlives the call. Called any number of times. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out);
typedef flhal_status (*flhal_plugin_v1_fn)(const flhal_host_v1* host, flhal_plugin_info_v1* out);
#ifdef __cplusplus
}
#endif

/* ---- dialects and schemas ------------------------------------------------------------------------- */
/* A second dialect of plugins whose chip is this process's own processor: shared objects. kernel.h says what `data` and
 * `options` of the source are. */
#define FLHAL_DIALECT_HOST_ELF "flhal-host-elf-1"

/* A vendor operation's name is "<your id>.<operation>". Its schema is written as PyTorch writes them, with arguments of the
 * types Tensor, Tensor?, int, float, bool, int[], float[] and str, and Tensors as results:
 *
 *     "acme.scaled_add(Tensor a, Tensor b, float scale=1.0) -> Tensor"
 *
 * Tensors are the call's inputs in their order. Of the rest those that differ from their default are attributes; the key of
 * each is its place among all arguments, from 0 (here: 2). A bool is an int of 0 or 1. PyTorch users write
 * torch_fl.ops.acme.scaled_add(a, b, scale=2.0). */
#endif
