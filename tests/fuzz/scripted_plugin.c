/* tests/fuzz/scripted_plugin.c: a library whose flhal_plugin_v1 is a function of the program that loads it. */
#include <flhal/plugin.h>
#include <stdlib.h>

flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) {
  const char* at = getenv("FLHAL_FUZZ_ENTRY");       /* the function's address in hexadecimal digits */
  return at ? ((flhal_plugin_v1_fn)(uintptr_t)strtoull(at, NULL, 16))(host, out) : FLHAL_E_UNSUPPORTED;
}
