// src/api/report.cc: exports of flhal/report.h.
#include <flhal/report.h>

#include "api/api_call.h"
#include "core/device.h"
#include "dispatch/fallback_policy.h"
#include "dispatch/report.h"
#include "memory/traffic.h"

using namespace flhal;

flhal_status flhal_fallback_enter(flhal_device* device, const char* op, const char* reason, uint64_t* out_ticket) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_fallback_enter"));
    return fallback_enter(device_from(device), op, reason, out_ticket);
  });
}

flhal_status flhal_fallback_leave(uint64_t ticket, uint64_t bytes_to_host, uint64_t bytes_to_device,
                                  const char* call_site) {
  return api_call(__func__,
                  [&]() -> Status { return fallback_leave(ticket, bytes_to_host, bytes_to_device, call_site); });
}

flhal_status flhal_fallback_push(const char* policy, const char* op) {
  return api_call(__func__, [&]() -> Status { return push_policy(policy, op); });
}

flhal_status flhal_fallback_pop(void) {
  return api_call(__func__, [&]() -> Status { return pop_policy(); });
}

flhal_status flhal_scope_enter(const char* name, uint32_t* out_outer) {
  return api_call(__func__, [&]() -> Status {
    if (name == nullptr || out_outer == nullptr) {
      return fail(FLHAL_E_INVALID, "flhal_scope_enter: name and out_outer may not be NULL; give \"\" for no scope");
    }
    *out_outer = enter_scope(name);
    return FLHAL_OK;
  });
}

void flhal_scope_leave(uint32_t outer) { leave_scope(outer); }

flhal_status flhal_report(const char* which, flhal_text_fn fn, void* ctx) {
  return api_call(__func__, [&]() -> Status {
    if (!fn) return fail(FLHAL_E_INVALID, "flhal_report: fn may not be NULL");
    FLHAL_ASSIGN(std::string text, report_json(which ? which : ""));
    fn(ctx, text.c_str(), text.size());
    return FLHAL_OK;
  });
}

flhal_status flhal_report_reset(const char* which) {
  return api_call(__func__, [&]() -> Status { return report_reset(which ? which : ""); });
}
