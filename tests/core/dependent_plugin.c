/* tests/core/dependent_plugin.c: a fork-safe plugin that needs libflhal_test_dependency.so, which lies beside it. Its product
 * name is what that library answers. */
#include <flhal/plugin.h>
#include <stdlib.h>
#include <string.h>

const char* flhal_test_dependency(void);

static flhal_status init(const flhal_host_v1* host, const flhal_init_v1* in, flhal_p_plugin** out) {
  (void)host;
  (void)in;
  *out = (flhal_p_plugin*)"plugin";
  return FLHAL_OK;
}
static void shut(flhal_p_plugin* p) { (void)p; }
static flhal_status count(flhal_p_plugin* p, uint32_t* n) {
  (void)p;
  *n = 1;
  return FLHAL_OK;
}
static flhal_status info(flhal_p_plugin* p, uint32_t i, flhal_p_device_info_v1* d) {
  (void)p;
  (void)i;
  d->chip = CHIP;
  d->product = flhal_test_dependency();
  return FLHAL_OK;
}
static flhal_status opened(flhal_p_plugin* p, uint32_t i, flhal_p_device** out) {
  (void)p;
  (void)i;
  *out = (flhal_p_device*)"device";
  return FLHAL_OK;
}
static void closed(flhal_p_device* d) { (void)d; }
static flhal_status alloc(flhal_p_device* d, flhal_p_slab_v1* s) {
  (void)d;
  (void)s;
  return FLHAL_EXHAUSTED;
}
static void release(flhal_p_device* d, flhal_p_memory* m) {
  (void)d;
  (void)m;
}
static flhal_status copy(flhal_p_device* d, flhal_p_stream* s, const flhal_p_copy_v1* c) {
  (void)d;
  (void)s;
  (void)c;
  return FLHAL_E_UNSUPPORTED;
}
static flhal_status fill(flhal_p_device* d, flhal_p_stream* s, const flhal_p_place* p, uint64_t n, const void* v, uint32_t w) {
  (void)d;
  (void)s;
  (void)p;
  (void)n;
  (void)v;
  (void)w;
  return FLHAL_E_UNSUPPORTED;
}
static const flhal_plugin_table_v1 table = {sizeof table, FLHAL_ST_TABLE, 0, init, shut, count, info, opened, closed, alloc, release, copy, fill};

flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  (void)host;
  out->id = CHIP;
  out->flags = FLHAL_PLUGIN_FORK_SAFE_PROBE;
  out->table = &table;
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = 1;
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = 2;
#endif
  return FLHAL_OK;
}
