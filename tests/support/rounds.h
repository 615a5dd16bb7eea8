// tests/support/rounds.h: how long a random test runs: as written in `make test`, ten times as long in `make test-full`.
#pragma once

#include <cstdlib>
#include <string_view>

namespace flhal::test {

inline int rounds(int usual) {
  const char* full = std::getenv("FLHAL_TEST_FULL");
  return full && std::string_view(full) == "1" ? usual * 10 : usual;
}

}  // namespace flhal::test
