// src/core/config_values.cc: parsers of setting values.
#include "core/config_values.h"

#include <charconv>
#include <cmath>

namespace flhal {
namespace {

struct Unit {
  std::string_view suffix;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"TiB", 1099511627776.0}, {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"TB", 1e12},
    {"GB", 1e9},              {"MB", 1e6},           {"kB", 1e3},        {"KB", 1e3},     {"B", 1.0},
};

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<double> parse_number(std::string_view text, double lowest, double highest) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < lowest || value > highest) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_integer(std::string_view text, uint64_t lowest, uint64_t highest) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) return std::nullopt;
  return value;
}

std::optional<PoolLimit> parse_pool_limit(std::string_view text) {
  auto share = [](std::optional<double> value) -> std::optional<PoolLimit> {
    if (!value || *value <= 0) return std::nullopt;
    return PoolLimit{*value, 0};
  };
  if (text.ends_with('%')) {
    auto percent = parse_number(trimmed(text.substr(0, text.size() - 1)), 0, 100);
    return share(percent ? std::optional(*percent / 100) : std::nullopt);
  }
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    auto amount = parse_number(trimmed(text.substr(0, text.size() - unit.suffix.size())), 0, 1e15);
    if (!amount || *amount * unit.bytes < 1 || *amount * unit.bytes > 1e18) return std::nullopt;
    return PoolLimit{0, static_cast<uint64_t>(*amount * unit.bytes)};
  }
  return share(parse_number(text, 0, 1));
}

}  // namespace flhal
