// tests/support/hostile.cc: one source, about thirty plugins, each wrong in one way. Built once per kind with -DKIND=<kind>.
//
// None declares FORK_SAFE_PROBE, so core asks them in a child process first. Kinds whose name ends in _in_process do declare it:
// what they do is survivable.
#include <flhal/plugin.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

// One number per kind; the preprocessor compares them.
enum Kind {
  throws_in_init, throws_in_init_in_process, crash_in_init, hang_in_init, exit_in_init, error_in_init, error_without_text,
  slow_in_init, throws_in_count, crash_in_count, hang_in_count, count_minus_one, count_billion, throws_in_info, crash_in_info,
  error_in_info, null_names, bad_chip_name, long_chip_name, uuid_clash, uuid_zero, alignment_3, wild_dtypes, wild_dtype_value,
  no_memory, slab_above_memory, unknown_class, truncated_table, tiny_table, long_table_tail, missing_slot, half_streams, null_table,
  null_id, bad_id, other_id, no_symbol, other_major, newer_host_needed, entry_fails, crash_in_entry, throws_in_entry,
  crash_in_constructor, exit_in_constructor, clashing_symbols_1, clashing_symbols_2, undefined_symbol, missing_dependency, duplicate_id,
  other_sanitizer, throws_in_open, error_in_open, null_device, null_handle, writes_past_info, error_in_alloc, throws_in_copy,
  throws_in_alloc, throws_in_fill, throws_in_free,
};
#define STRING_(x) #x
#define STRING(x) STRING_(x)
static constexpr Kind kKind = KIND;
static const char* const kName = STRING(KIND);

struct flhal_p_plugin { const flhal_host_v1* host; };
struct flhal_p_device { flhal_p_plugin* plugin; };

__attribute__((no_sanitize("undefined"))) static void crash() { *static_cast<volatile int*>(nullptr) = 1; }
static void hang() { for (;;) pause(); }

// LOAD-04: both kinds export this name, with other bodies; each must see its own.
extern "C" __attribute__((visibility("default"), noinline)) const char* flhal_hostile_shared_helper() {
  return kKind == clashing_symbols_1 ? "body one" : "body two";
}
extern "C" const char* flhal_hostile_nobody_defines_this();
extern "C" int flhal_hostile_absent_library();

__attribute__((constructor)) static void construct() {
  if (kKind == crash_in_constructor) crash();
  if (kKind == exit_in_constructor) _exit(0);
}

static flhal_status init(const flhal_host_v1* host, const flhal_init_v1*, flhal_p_plugin** out) {
  switch (kKind) {
    case throws_in_init: case throws_in_init_in_process: throw std::runtime_error("hostile: thrown in init");
    case crash_in_init: crash(); break;
    case hang_in_init: hang(); break;
    case exit_in_init: exit(0);
    case slow_in_init: sleep(3); break;
    case error_in_init: host->set_error(FLHAL_E_UNSUPPORTED, 77, "hostile: the driver is not running; start it"); return FLHAL_E_UNSUPPORTED;
    case error_without_text: return FLHAL_E_VENDOR_LAST - 5;
    case null_handle: *out = nullptr; return FLHAL_OK;
    default: break;
  }
  *out = new flhal_p_plugin{host};
  return FLHAL_OK;
}

static void shutdown(flhal_p_plugin* p) { delete p; }

static flhal_status count(flhal_p_plugin*, uint32_t* n) {
  if (kKind == throws_in_count) throw 42;
  if (kKind == crash_in_count) crash();
  if (kKind == hang_in_count) hang();
  *n = kKind == count_minus_one ? 0xffffffffu : kKind == count_billion ? 1000000000u : 1u;
  return FLHAL_OK;
}

static flhal_status info(flhal_p_plugin* p, uint32_t i, flhal_p_device_info_v1* d) {
  if (kKind == throws_in_info) throw std::runtime_error("hostile: thrown in device_info");
  if (kKind == crash_in_info) crash();
  if (kKind == error_in_info) { p->host->set_error(FLHAL_E_DEVICE_LOST, 0, "hostile: the chip fell off the bus"); return FLHAL_E_DEVICE_LOST; }
  static const flhal_dtype dtypes[] = {FLHAL_F32, kKind == wild_dtype_value ? 0xffffffffu : FLHAL_I64};
  static char long_name[5000];
  memset(d->uuid, 0, 16);
  if (kKind != uuid_zero) memcpy(d->uuid, kName, strnlen(kName, 15));
  if (kKind != uuid_zero) d->uuid[15] = static_cast<uint8_t>(i + 1);
  d->chip = "badchip";
  d->product = "Hostile chip";
  d->vendor = "Hostile";
  d->memory_bytes = 1ull << 30;
  d->largest_slab_bytes = 1ull << 28;
  d->slab_alignment = 256;
  switch (kKind) {
    case null_names: d->chip = d->product = d->vendor = nullptr; break;
    case bad_chip_name: d->chip = "Chip A!\n[0] chip_b: 80GB"; break;
    case long_chip_name: memset(long_name, 'a', sizeof long_name - 1); d->chip = long_name; break;
    case uuid_clash: memcpy(d->uuid, "ram-chip-0000001", 16); break;
    case alignment_3: d->slab_alignment = 3; break;
    case wild_dtypes: d->storage_dtypes = dtypes; d->n_storage_dtypes = 1000000000u; break;
    case wild_dtype_value: d->storage_dtypes = dtypes; d->n_storage_dtypes = 2; break;
    case no_memory: d->memory_bytes = d->largest_slab_bytes = 0; break;
    case slab_above_memory: d->largest_slab_bytes = ~0ull; break;
    case unknown_class: d->device_class = 4711; break;
    case clashing_symbols_1: d->chip = "clash_one"; d->product = flhal_hostile_shared_helper(); break;
    case clashing_symbols_2: d->chip = "clash_two"; d->product = flhal_hostile_shared_helper(); break;
    case writes_past_info: d->struct_size = 100000; break;
#if defined(KIND_undefined_symbol)
    case undefined_symbol: d->product = flhal_hostile_nobody_defines_this(); break;
#endif
#if defined(KIND_missing_dependency)
    case missing_dependency: d->queues = static_cast<uint32_t>(flhal_hostile_absent_library()); break;
#endif
    default: break;
  }
  return FLHAL_OK;
}

static flhal_status open_device(flhal_p_plugin* p, uint32_t, flhal_p_device** out) {
  if (kKind == throws_in_open) throw std::runtime_error("hostile: thrown in device_open");
  if (kKind == error_in_open) { p->host->set_error(FLHAL_E_UNSUPPORTED, 5, "hostile: the chip is in use by another program"); return FLHAL_E_UNSUPPORTED; }
  *out = kKind == null_device ? nullptr : new flhal_p_device{p};
  return FLHAL_OK;
}
static void close_device(flhal_p_device* d) { delete d; }

static flhal_status alloc(flhal_p_device* d, flhal_p_slab_v1* s) {
  if (kKind == error_in_alloc) { d->plugin->host->set_error(FLHAL_E_VENDOR_LAST - 9, -9, "hostile: no memory controller"); return FLHAL_E_VENDOR_LAST - 9; }
  if (kKind == throws_in_alloc) throw 42;
  s->memory = static_cast<flhal_p_memory*>(aligned_alloc(4096, (s->bytes + 4095) / 4096 * 4096));
  return s->memory ? FLHAL_OK : FLHAL_EXHAUSTED;
}
static void free_memory(flhal_p_device*, flhal_p_memory* m) {
  free(m);
  if (kKind == throws_in_free) throw 42;
}

static char* at(const flhal_p_place* p) { return p->memory ? reinterpret_cast<char*>(p->memory) + p->offset : static_cast<char*>(p->host); }
static flhal_status copy(flhal_p_device*, flhal_p_stream*, const flhal_p_copy_v1* c) {
  if (kKind == throws_in_copy) throw std::runtime_error("hostile: thrown in copy");
  for (uint64_t r = 0; r < c->rows; ++r) memmove(at(&c->dst) + r * c->dst_pitch, at(&c->src) + r * c->src_pitch, c->bytes);
  return FLHAL_OK;
}
static flhal_status fill(flhal_p_device*, flhal_p_stream*, const flhal_p_place* p, uint64_t n, const void* v, uint32_t w) {
  if (kKind == throws_in_fill) throw std::runtime_error("hostile: thrown in fill");
  for (uint64_t i = 0; i < n; i += w) memcpy(at(p) + i, v, w);
  return FLHAL_OK;
}

static flhal_status create_stream(flhal_p_device*, int32_t, uint32_t, flhal_p_stream**) { return FLHAL_E_UNSUPPORTED; }

// A longer table than core knows: the tail must be zero, and this one is not.
struct LongTable { flhal_plugin_table_v1 table; uint64_t tail[4]; };

static const flhal_plugin_table_v1* make_table() {
  static LongTable t{};
  t.table = {};
  t.table.struct_size = sizeof t.table;
  t.table.struct_type = FLHAL_ST_TABLE;
  t.table.init = init;
  t.table.shutdown = shutdown;
  t.table.device_count = count;
  t.table.device_info = info;
  t.table.device_open = open_device;
  t.table.device_close = close_device;
  t.table.memory_alloc = alloc;
  t.table.memory_free = free_memory;
  t.table.copy = kKind == missing_slot ? nullptr : copy;
  t.table.fill = fill;
  if (kKind == half_streams) t.table.stream_create = create_stream;
  if (kKind == truncated_table) t.table.struct_size = static_cast<uint32_t>(offsetof(flhal_plugin_table_v1, device_open));
  if (kKind == tiny_table) t.table.struct_size = 8;
  if (kKind == long_table_tail) { t.table.struct_size = sizeof t; t.tail[2] = 0x1234; }
  return &t.table;
}

#if defined(KIND_no_symbol)
#define ENTRY flhal_plugin_entry      // a plausible misspelling
#elif defined(KIND_other_major)
#define ENTRY flhal_plugin_v2
#else
#define ENTRY flhal_plugin_v1
#endif

extern "C" __attribute__((visibility("default"))) flhal_status ENTRY(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  if (kKind == crash_in_entry) crash();
  if (kKind == throws_in_entry) throw std::runtime_error("hostile: thrown in flhal_plugin_v1");
  if (kKind == entry_fails) { if (host) host->set_error(FLHAL_E_INTERNAL, 0, "hostile: licence file missing"); return FLHAL_E_INTERNAL; }
  out->abi_minor = kKind == newer_host_needed ? 9 : FLHAL_PLUGIN_ABI_MINOR;
  out->oldest_host_minor = kKind == newer_host_needed ? 7 : 0;
  out->id = kKind == duplicate_id ? "ram" : kKind == null_id ? nullptr : kKind == bad_id ? "../no id" : kKind == other_id ? "somebody_else" : kName;
  out->version = "1.0";
  out->build_id = kName;
  out->vendor = "Hostile";
  out->flags = kKind == throws_in_init_in_process ? FLHAL_PLUGIN_FORK_SAFE_PROBE : 0;
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  if (kKind == other_sanitizer) out->sanitizer = out->sanitizer == 1 ? 2 : 1;
  out->table = kKind == null_table ? nullptr : make_table();
  return FLHAL_OK;
}
