// src/core/status.h: how core reports failure: a code that travels, a text that waits in thread-local storage.
//
// Threads: the text belongs to the thread that failed. Expected answers (positive codes) carry no text and cost nothing.
#pragma once

#include <flhal/scalars.h>

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace flhal {

// A flhal_status that may not be ignored.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(flhal_status code) : code_(code) {}  // NOLINT: implicit on purpose, FLHAL_OK is a Status
  constexpr bool ok() const { return code_ == FLHAL_OK; }
  constexpr flhal_status code() const { return code_; }

 private:
  flhal_status code_ = FLHAL_OK;
};

// Stores code and text as this thread's last failure and gives the code back.
Status fail_text(flhal_status code, std::string text, int64_t vendor_code = 0);

// fail(FLHAL_E_INVALID, "flhal_copy: dst range [{}, {}) leaves ...", a, b)
template <typename... Args>
Status fail(flhal_status code, fmt::format_string<Args...> format, Args&&... args) {
  return fail_text(code, fmt::format(format, std::forward<Args>(args)...));
}

// This thread's last failure: FLHAL_OK and "" when there was none.
flhal_status last_error_code();
const std::string& last_error_text();
int64_t last_error_vendor_code();
// Puts `prefix` before the text of this thread's last failure ("op add, call 17: ...").
void prefix_last_error(std::string_view prefix);

// A value or a failure.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}                 // NOLINT: implicit on purpose
  Result(Status failure) : state_(failure) {}                   // NOLINT
  Result(flhal_status failure) : state_(Status(failure)) {}     // NOLINT
  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<T, Status> state_;
};

inline Status to_status(Status s) { return s; }
inline Status to_status(flhal_status s) { return s; }
template <typename T>
Status to_status(const Result<T>& r) { return r.status(); }

#define FLHAL_TRY(expression)                                         \
  do {                                                                \
    ::flhal::Status try_status_ = ::flhal::to_status(expression);     \
    if (__builtin_expect(!try_status_.ok(), 0)) return try_status_;   \
  } while (0)

#define FLHAL_CONCAT_(a, b) a##b
#define FLHAL_CONCAT(a, b) FLHAL_CONCAT_(a, b)
// FLHAL_ASSIGN(auto x, f()): x = the value, or return the failure.
#define FLHAL_ASSIGN(declaration, expression)                                          \
  auto FLHAL_CONCAT(assign_, __LINE__) = (expression);                                 \
  if (!FLHAL_CONCAT(assign_, __LINE__).ok()) return FLHAL_CONCAT(assign_, __LINE__).status(); \
  declaration = std::move(FLHAL_CONCAT(assign_, __LINE__).value())

}  // namespace flhal
