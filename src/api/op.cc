// src/api/op.cc: exports of flhal/op.h.
#include <flhal/op.h>

#include "api/api_call.h"
#include "core/fork_guard.h"
#include "dispatch/dispatch.h"
#include "dispatch/thread_state.h"

using namespace flhal;

flhal_status flhal_op_run(flhal_stream* stream, const flhal_op_call* call) {
  return api_call(__func__, [&]() -> Status {
    Stream* s = stream_from(stream);
    bool plain = s && s->tag == kStreamTag && !forked() && !g_shut_down.load(std::memory_order_relaxed);
    if (__builtin_expect(!plain, 0)) FLHAL_TRY(check_stream(stream, "flhal_op_run"));
    return run_call(s, call);
  });
}

flhal_status flhal_op_route(flhal_device* device, const flhal_op_call* call, uint32_t* out_route,
                            const char** out_reason) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_op_route"));
    uint32_t route;
    const char* reason;
    FLHAL_TRY(route_of_call(device_from(device), call, &route, &reason));
    if (out_route) *out_route = route;
    if (out_reason) *out_reason = reason;
    return FLHAL_OK;
  });
}

flhal_status flhal_op_infer(const flhal_op_call* call, flhal_tensor* outputs) {
  return api_call(__func__, [&]() -> Status { return infer_outputs(call, outputs); });
}

uint32_t flhal_op_find(const char* name) {
  const opset::OpDef* def = name ? opset::find(name) : nullptr;
  return def ? def->number : 0;
}

const char* flhal_last_decline(void) {
  return t_dispatch ? t_dispatch->decline : "";
}
