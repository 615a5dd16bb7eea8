// src/api/base.cc: the exports of flhal/base.h.
#include <flhal/base.h>

#include <cstring>

#include "api/api_call.h"
#include "core/config.h"
#include "core/device.h"
#include "core/discovery.h"
#include "core/fork_guard.h"

using namespace flhal;

static Status check_text(const char* text, const char* function, const char* name) {
  return text ? Status() : fail(FLHAL_E_INVALID, "{}: {} is NULL", function, name);
}

static Status check_running(const char* function) {
  if (forked()) return forked_failure(function);
  return g_shut_down.load(std::memory_order_acquire) ? shut_down_failure(function) : Status();
}

extern "C" {

flhal_status flhal_init(uint32_t header_version) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_running("flhal_init"));
    const uint32_t major = header_version >> 16, minor = header_version & 0xffffu;
    if (major != FLHAL_VERSION_MAJOR || minor > FLHAL_VERSION_MINOR)
      return fail(FLHAL_E_ABI,
                  "flhal_init: the program was compiled for flhal {}.{} and the library is {}.{}; install a library of major {} that is "
                  "at least {}.{}, or compile the program again: pip install --upgrade torch-fl",
                  major, minor, FLHAL_VERSION_MAJOR, FLHAL_VERSION_MINOR, major, major, minor);
    return config_load();
  });
}

flhal_status flhal_shutdown(void) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_running("flhal_shutdown"));
    return shut_down_all();
  });
}

uint32_t flhal_version(void) { return FLHAL_VERSION; }

flhal_status flhal_last_error(char* text, uint64_t capacity, int64_t* vendor_code) {
  const std::string& last = last_error_text();
  if (text != nullptr && capacity != 0) {
    uint64_t n = last.size() < capacity ? last.size() : capacity - 1;
    while (n > 0 && n < last.size() && (static_cast<unsigned char>(last[n]) & 0xc0) == 0x80) --n;  // not inside a character
    std::memcpy(text, last.data(), n);
    text[n] = 0;
  }
  if (vendor_code != nullptr) *vendor_code = last_error_vendor_code();
  return last_error_code();
}

const char* flhal_status_name(flhal_status status) {
  switch (status) {
#define X(name, value, meaning, remedy) \
  case value: return "FLHAL_" #name;
#include "core/status.def"
#undef X
    default: return status <= FLHAL_E_VENDOR_LAST ? "FLHAL_E_VENDOR" : "FLHAL_E_UNKNOWN";
  }
}

flhal_status flhal_config_set(const char* key, const char* value) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_running("flhal_config_set"));
    FLHAL_TRY(check_text(key, "flhal_config_set", "key"));
    FLHAL_TRY(check_text(value, "flhal_config_set", "value"));
    return config_set(key, value);
  });
}

flhal_status flhal_config_get(const char* key, flhal_text_fn fn, void* ctx) {
  return api_call(__func__, [&]() -> Status {
    FLHAL_TRY(check_running("flhal_config_get"));
    FLHAL_TRY(check_text(key, "flhal_config_get", "key"));
    if (fn == nullptr) return fail(FLHAL_E_INVALID, "flhal_config_get: fn is NULL");
    FLHAL_ASSIGN(std::string value, config_get(key));
    fn(ctx, value.data(), value.size());
    return FLHAL_OK;
  });
}

}  // extern "C"
