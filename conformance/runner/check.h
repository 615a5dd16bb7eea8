// conformance/runner/check.h: how a case says that something is wrong.
//
// A case ends with its first failed check. The text is a whole thought: what was done, what came, what should have come; it
// is what a chip maker reads.
#pragma once

#include <flhal/scalars.h>
#include <fmt/format.h>

#include <string>

namespace flhal::conformance {

struct Failed { std::string text; };
struct NotSupported { std::string text; };
struct DeviceLost { std::string text; };

[[noreturn]] inline void fail(std::string text) { throw Failed{std::move(text)}; }
[[noreturn]] inline void not_supported(std::string text) { throw NotSupported{std::move(text)}; }

// "FLHAL_E_INVALID (-1)"
std::string status_text(flhal_status status);

#define FLHAL_EXPECT(condition, ...)                                      \
  do {                                                                    \
    if (!(condition)) ::flhal::conformance::fail(fmt::format(__VA_ARGS__)); \
  } while (false)

}  // namespace flhal::conformance
