// src/core/plugin_call.cc: what becomes of an exception that a plugin let out.
#include "core/plugin_call.h"

#include <string>

#include "core/host_services.h"
#include "core/log.h"

namespace flhal {
namespace {

constexpr const char* kAdvice = "; report it to the plugin's maker, no exception may cross the boundary";

std::string sentence(const char* what) {
  return what ? std::string("threw a C++ exception: ") + what : std::string("threw a C++ exception of unknown type");
}

}  // namespace

flhal_status plugin_threw(const char* what) noexcept {
  try {
    leave_plugin_error(FLHAL_E_INTERNAL, 0, sentence(what).c_str(), kAdvice);
  } catch (...) {                            // no memory for the text: the code must do
  }
  return FLHAL_E_INTERNAL;
}

void plugin_threw_in_release(const char* what) noexcept {
  try {
    log(kLogError, "a plugin's slot that gives something back {}{}", sentence(what), kAdvice);
  } catch (...) {
  }
}

}  // namespace flhal
