// csrc/config.h: a setting of flhal as text.
#pragma once

#include <flhal/flhal.h>

#include <string>

#include "csrc/errors.h"

namespace torch_fl {

inline std::string config_text(const char* key) {
  std::string text;
  auto append = [](void* to, const char* part, uint64_t n) { static_cast<std::string*>(to)->append(part, n); };
  check(flhal_config_get(key, append, &text), "flhal_config_get");
  return text;
}

}  // namespace torch_fl
