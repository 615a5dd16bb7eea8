// src/memory/byte_text.h: a number of bytes for people: "1.50 GiB (1610612736 bytes)", "512 bytes".
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace flhal {

inline std::string byte_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = double(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) value /= 1024, ++unit;
  return fmt::format("{:.2f} {} ({} bytes)", value, kUnits[unit], bytes);
}

}  // namespace flhal
