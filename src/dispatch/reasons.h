// src/dispatch/reasons.h: why a route was not taken: a code with its text, and a detail in the refusing part's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flhal {

enum class Reason : uint32_t {
#define X(code, text, docs) code,
#include "dispatch/reasons.def"
#undef X
};
const char* reason_text(Reason reason);

struct RouteRefusal {
  Reason reason = Reason::NONE;
  std::string detail;            // "" or more words
  uint64_t depends_on = 0;       // FLHAL_DEPENDS_*: a call of the class that differs there may not be refused
  std::string text() const;      // "the plugin declined: float64 is not supported"
};

// Keeps a text for ever and gives the same pointer for the same text. For reasons, which the ABI calls static.
const char* interned(std::string_view text);

// In a function that makes a route and gives a pointer: refuses in one statement.
#define FLHAL_DECLINE_UNLESS(condition, code, words)                          \
  do {                                                                        \
    if (!(condition)) {                                                       \
      why = ::flhal::RouteRefusal{::flhal::Reason::code, words, why.depends_on};   \
      return nullptr;                                                         \
    }                                                                         \
  } while (0)

}  // namespace flhal
