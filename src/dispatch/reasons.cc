// src/dispatch/reasons.cc: texts of reasons, and the store that makes composed ones static.
#include "dispatch/reasons.h"

#include <mutex>
#include <unordered_set>

namespace flhal {

const char* reason_text(Reason reason) {
  static const char* const texts[] = {
#define X(code, text, docs) text,
#include "dispatch/reasons.def"
#undef X
  };
  return texts[static_cast<uint32_t>(reason)];
}

std::string RouteRefusal::text() const {
  std::string t = reason_text(reason);
  if (!detail.empty()) t += (t.empty() ? "" : ": ") + detail;
  return t;
}

const char* interned(std::string_view text) {
  // Bounded by what plans can say: the number of distinct reasons, not of calls. Never destroyed: texts are static.
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return texts.emplace(text).first->c_str();
}

}  // namespace flhal
