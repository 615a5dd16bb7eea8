// src/core/config_values.h: parsers of setting values. Independent of the locale; the whole text must parse.
#pragma once

#include <optional>
#include <string_view>

#include "core/config.h"

namespace flhal {

std::string_view trimmed(std::string_view text);
std::optional<double> parse_number(std::string_view text, double lowest, double highest);
std::optional<uint64_t> parse_integer(std::string_view text, uint64_t lowest, uint64_t highest);

// "0.7" and "70%" are shares (above 0, at most 1 and 100 %); "8GiB", "512MiB", "8GB", "4096B" are bytes. A number above 1
// without a unit does not parse: it could be meant either way.
std::optional<PoolLimit> parse_pool_limit(std::string_view text);

// Index of `text` in a list of names, e.g. {"auto", "warn", "strict"}.
template <size_t N>
std::optional<uint32_t> parse_name(std::string_view text, const char* const (&names)[N]) {
  for (uint32_t i = 0; i < N; ++i)
    if (text == names[i]) return i;
  return std::nullopt;
}

}  // namespace flhal
