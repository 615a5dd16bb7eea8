// src/core/refusal.h: why something was not loaded, in two halves: what was found, and what to do.
#pragma once

#include <string>
#include <utility>

#include "core/status.h"

namespace flhal {

// An empty refusal (code FLHAL_OK) means: nothing stands against it.
struct [[nodiscard]] Refusal {
  flhal_status code = FLHAL_OK;
  std::string reason, remedy;

  explicit operator bool() const { return code != FLHAL_OK; }
  std::string sentence() const { return remedy.empty() ? reason : reason + "; " + remedy; }
  Status as_status() const { return code == FLHAL_OK ? Status() : fail_text(code, sentence()); }
};

inline Refusal refuse(flhal_status code, std::string reason, std::string remedy) {
  return {code, std::move(reason), std::move(remedy)};
}

#define FLHAL_REFUSE_ON(expression)                      \
  do {                                                   \
    ::flhal::Refusal refusal_ = (expression);            \
    if (refusal_) return refusal_;                       \
  } while (0)

}  // namespace flhal
