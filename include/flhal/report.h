// flhal/report.h: what fell back, why and at what cost; and every other fact core knows, as JSON.
#ifndef FLHAL_REPORT_H
#define FLHAL_REPORT_H

#include <flhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

// Asks for permission to run `op` outside of flhal (a framework's CPU op). FLHAL_OK = go on, and call
// flhal_fallback_leave; FLHAL_E_DENIED under the policy strict (the text names op, reason, policy and remedy).
// op, reason: copied. Since: 1.0
FLHAL_API flhal_status flhal_fallback_enter(flhal_device* device, const char* op, const char* reason,
                                            uint64_t* out_ticket);
// bytes_to_host, bytes_to_device: moved for it. call_site: "file:line", kept the first time; may be NULL. Since: 1.0
FLHAL_API flhal_status flhal_fallback_leave(uint64_t ticket, uint64_t bytes_to_host, uint64_t bytes_to_device,
                                            const char* call_site);

// Policies of this thread only: pushed on a stack that is asked before the process-wide policy. `op` NULL = every op;
// otherwise only that op. policy: "auto", "warn" or "strict". Since: 1.0
FLHAL_API flhal_status flhal_fallback_push(const char* policy, const char* op);
FLHAL_API flhal_status flhal_fallback_pop(void);

// Names what the calling thread works on from now on; copies between devices are counted under that name, in the report
// "fallback" as `moves`. Names are kept for ever: take names of places in a program, not of single calls.
// *out_outer: the scope the thread was in; give it to flhal_scope_leave, on the same thread. Since: 1.0
FLHAL_API flhal_status flhal_scope_enter(const char* name, uint32_t* out_outer);
FLHAL_API void flhal_scope_leave(uint32_t outer);

// Gives a report as JSON text. which: "load" (plugins: what was found, what did not load, why, remedy, places searched),
// "devices", "fallback" (per op: route, reason, calls, ms, bytes, call site; and what moved between devices), "routes" (calls per op and route), "memory",
// "config" (settings, where each value came from), "ops" (the op set), "vendor_ops" (name and schema of what plugins of open devices add),
// "layers" (what the layers counted, injected, wrote and found).
// Errors: FLHAL_E_NOT_FOUND lists the reports. Since: 1.0
FLHAL_API flhal_status flhal_report(const char* which, flhal_text_fn fn, void* ctx);
// Sets the counts of "fallback" and "routes", or the counts and findings of "layers", back to nothing. Since: 1.0
FLHAL_API flhal_status flhal_report_reset(const char* which);

#ifdef __cplusplus
}
#endif
#endif  // FLHAL_REPORT_H
