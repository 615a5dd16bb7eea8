// src/api/op.cc: exports of flhal/op.h.
#include <flhal/op.h>

#include "api/api_call.h"
#include "core/fork_guard.h"
#include "dispatch/dispatch.h"
#include "dispatch/hot_path.h"
#include "dispatch/thread_state.h"

using namespace flhal;

namespace {

[[gnu::always_inline]] inline Status op_run(flhal_stream* stream, const flhal_op_call* call) {
  Stream* s = stream_from(stream);
  bool plain = s && s->tag == kStreamTag && !forked() && !g_shut_down.load(std::memory_order_relaxed);
  if (__builtin_expect(!plain, 0)) FLHAL_TRY(check_stream(stream, "flhal_op_run"));
  return run_call_hot(s, call);
}

}  // namespace

// Not through api_call's lambda, which costs a call and a frame here; a failure still ends there.
flhal_status flhal_op_run(flhal_stream* stream, const flhal_op_call* call) {
  try {
    return op_run(stream, call).code();
  } catch (...) {
    return api_call(__func__, []() -> Status { throw; });
  }
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
