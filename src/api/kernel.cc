// src/api/kernel.cc: exports of flhal/kernel.h.
#include <flhal/kernel.h>

#include "api/api_call.h"
#include "core/fork_guard.h"
#include "dispatch/launch.h"

using namespace flhal;

static Status check_module(flhal_module* module, const char* function) {
  if (forked()) return forked_failure(function);
  auto* m = reinterpret_cast<AppModule*>(module);
  if (m && m->tag == kModuleTag) return FLHAL_OK;
  return fail(FLHAL_E_INVALID, "{}: {} is no module, or was released", function, fmt::ptr(module));
}

flhal_status flhal_module_load(flhal_device* device, const char* dialect, const void* data, uint64_t bytes,
                               const char* options, flhal_module** out_module) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_device(device, "flhal_module_load"));
    if (!out_module) return fail(FLHAL_E_INVALID, "flhal_module_load: out_module may not be NULL");
    FLHAL_ASSIGN(AppModule * module, AppModule::load(device_from(device), dialect, data, bytes, options));
    *out_module = reinterpret_cast<flhal_module*>(module);
    return FLHAL_OK;
  });
}

flhal_status flhal_module_release(flhal_module* module) {
  return api_call(__func__, [&]() -> Status {
    if (!module || forked()) return FLHAL_OK;   // a forked child frees silently
    FLHAL_TRY(check_module(module, "flhal_module_release"));
    reinterpret_cast<AppModule*>(module)->release();
    return FLHAL_OK;
  });
}

flhal_status flhal_function_get(flhal_module* module, const char* name, flhal_function** out_function) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_module(module, "flhal_function_get"));
    if (!out_function) return fail(FLHAL_E_INVALID, "flhal_function_get: out_function may not be NULL");
    FLHAL_ASSIGN(AppFunction * found, reinterpret_cast<AppModule*>(module)->function(name));
    *out_function = reinterpret_cast<flhal_function*>(found);
    return FLHAL_OK;
  });
}

namespace {

[[gnu::always_inline]] inline Status launch(flhal_stream* stream, flhal_function* function, const uint64_t groups[3],
                                            const uint32_t group_size[3], const flhal_kernel_arg* args,
                                            uint32_t n_args) {
  Stream* s = stream_from(stream);
  bool plain = s && s->tag == kStreamTag && !forked() && !g_shut_down.load(std::memory_order_relaxed);
  if (__builtin_expect(!plain, 0)) FLHAL_TRY(check_stream(stream, "flhal_launch"));
  auto* f = reinterpret_cast<AppFunction*>(function);
  if (__builtin_expect(!f || f->tag != kFunctionTag || !groups || !group_size || (n_args && !args), 0))
    return fail(FLHAL_E_INVALID, "flhal_launch: function {} was not given by flhal_function_get, or groups, group_size or "
                "args are NULL", fmt::ptr(function));
  return launch_function(s, f, groups, group_size, args, n_args);
}

}  // namespace

// Not through api_call's lambda, which costs a call and a frame here; a failure still ends there.
flhal_status flhal_launch(flhal_stream* stream, flhal_function* function, const uint64_t groups[3],
                          const uint32_t group_size[3], const flhal_kernel_arg* args, uint32_t n_args) {
  try {
    return launch(stream, function, groups, group_size, args, n_args).code();
  } catch (...) {
    return api_call(__func__, []() -> Status { throw; });
  }
}
