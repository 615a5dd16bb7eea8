// flhal/base.h: the scalars both ABIs share, and the library's life: init, errors, settings.
//
// Every function of every flhal header may be called from any thread unless its comment says otherwise.
// Every function that returns flhal_status leaves a text for a negative answer; see flhal_last_error.
#ifndef FLHAL_BASE_H
#define FLHAL_BASE_H

#include <flhal/scalars.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FLHAL_API __attribute__((visibility("default")))
#else
#define FLHAL_API
#endif

// Version of the application ABI. Same major: every older program runs on every newer library.
#define FLHAL_VERSION_MAJOR 0u
#define FLHAL_VERSION_MINOR 1u
#define FLHAL_VERSION ((FLHAL_VERSION_MAJOR << 16) | FLHAL_VERSION_MINOR)

// Receives `n` bytes of UTF-8 text, once per call of the function it was given to. The text is only valid during
// the call.
typedef void (*flhal_text_fn)(void* ctx, const char* utf8, uint64_t n);

// Reads settings and manifests. Opens no driver. Idempotent; every other function calls it by itself, so a program
// needs it only to hear about bad settings early.
//
// header_version: FLHAL_VERSION, as the program was compiled.
// Errors: FLHAL_E_ABI when the library has another major version or is older than the header;
//         FLHAL_E_INVALID when an environment variable does not parse (the text lists the valid values).
// Since:  1.0
FLHAL_API flhal_status flhal_init(uint32_t header_version);

// Finishes all work, gives everything back, shuts the plugins down. Afterwards every call but the two error queries
// answers FLHAL_E_INVALID. Never needed at process exit. Threads: call it when no other thread uses flhal.
// Since: 1.0
FLHAL_API flhal_status flhal_shutdown(void);

// FLHAL_VERSION of the library that runs. Since: 1.0
FLHAL_API uint32_t flhal_version(void);

// Copies this thread's last failure text (cause and remedy, one or more sentences, always terminated) and tells its
// code. `text` may be NULL when capacity is 0. `vendor_code` may be NULL; 0 when no driver code is known.
// Returns the status of that failure, FLHAL_OK when this thread has had none. Never changes it. Since: 1.0
FLHAL_API flhal_status flhal_last_error(char* text, uint64_t capacity, int64_t* vendor_code);

// The name of a status code, e.g. "FLHAL_E_INVALID"; "FLHAL_E_VENDOR" for codes of drivers. Static text. Since: 1.0
FLHAL_API const char* flhal_status_name(flhal_status status);

// Changes a setting while the program runs; takes effect at the next call.
//
// Keys and their values (the environment gives the first value: FLHAL_<KEY> wins over TORCH_FL_<KEY>):
//   fallback_policy     auto | warn | strict                                  default auto
//   fallback_threshold  0.0 .. 1.0, share of calls that fell back             default 0.1
//   memory_pool_size    0.7 | 70% | 8GiB | 512MiB; a ceiling per device       default 50%
//   async_level         0 | 1 | 2                                             default 1
//   log_level           error | warn | info | debug                           default warn
//   plugin_path         colon list of folders, manifests or libraries         read at the first device count
//   device              name of the default device                            read at the first device count
//   visible_devices     comma list of names, filters and orders               read at the first device count
//   slow_slot_s         seconds after which a plugin call that has not returned is logged; 0 = off; read at the first device count
//   layers              none | of validate,trace,fault,stats; with faults, trace_file, trace_payload     docs/why/layers.md
//   route               auto | native | kernel | composite | host             default auto; for tests and measurements
// Of one device or op: "memory_pool_size@<device name>", "fallback_policy@<op as in reports>"; "default" takes it back.
// Errors: FLHAL_E_INVALID, the text lists the valid keys or values. Since: 1.0
FLHAL_API flhal_status flhal_config_set(const char* key, const char* value);

// Gives the present value of a setting as text, in the form flhal_config_set takes. Since: 1.0
FLHAL_API flhal_status flhal_config_get(const char* key, flhal_text_fn fn, void* ctx);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_BASE_H
