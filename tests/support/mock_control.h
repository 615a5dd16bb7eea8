// tests/support/mock_control.h: the mock plugin's control table, from the library that core has loaded.
#pragma once

#include <mock/control.h>

namespace flhal::test {

// Opens the plugin's library a second time, which gives the same copy when core has it. Never null: the test program ends
// with a sentence when the library is not there.
const flhal_mock_control_v1& mock_control();

inline flhal_mock_counts mock_counts(uint32_t chip = FLHAL_MOCK_ALL_DEVICES) {
  flhal_mock_counts counts;
  mock_control().counts(chip, &counts, sizeof counts);
  return counts;
}

// While it lives the mock's workers do nothing.
class MockHold {
 public:
  MockHold() { mock_control().hold(); }
  ~MockHold() { mock_control().release(); }
  MockHold(const MockHold&) = delete;
  void step(uint32_t n) { mock_control().step(n); }
};

// A script for one scope; the environment's afterwards.
class MockScript {
 public:
  explicit MockScript(const char* text);
  ~MockScript() { mock_control().script(nullptr); }
  MockScript(const MockScript&) = delete;
};

}  // namespace flhal::test
