// tests/stream/truth_test.cc: asynchronous work over three chips never shows wrong bytes; and the test would see them.
//
// Seconds: FLHAL_TEST_TRUTH_SECONDS, else 10; 300 with FLHAL_TEST_FULL.
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "memory/block_pool.h"
#include "stream/truth_program.h"

using namespace flhal;
using namespace flhal::test;

static int seconds() {
  if (const char* text = getenv("FLHAL_TEST_TRUTH_SECONDS")) return atoi(text);
  const char* full = getenv("FLHAL_TEST_FULL");
  return full && std::string_view(full) == "1" ? 300 : 10;
}

TEST_CASE("truth: random programs over three chips of two makers, late and reordered, show no wrong byte", "[core][truth][COPY-05]") {
  Level two("2");
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds());
  uint64_t seed = 1, steps = 0;
  do {
    MockScript late(fmt::format("reorder={},delay_ms={}", seed, seed % 3).c_str());
    TruthProgram program(seed, Without::kNothing);
    for (int i = 0; i < 400 && program.wrong.empty(); ++i) program.step();
    program.check_all();
    INFO("seed " << seed);
    REQUIRE(program.wrong == "");
    steps += program.steps;
    ++seed;
  } while (std::chrono::steady_clock::now() < end);
  WARN(steps << " steps, " << seed - 1 << " programs");
  for (const char* name : {"chip_a", "chip_b", "ram"}) {
    REQUIRE_OK(synchronize_device(chip(name)));
    REQUIRE_OK(static_cast<BlockPool*>(chip(name)->pool)->check());
    CHECK(stats_of(chip(name)).pending_free == 0);
  }
  CHECK(retire_pending() == 0);
  CHECK(mock_counts().misuse == 0);
}

// Not under ThreadSanitizer: what is left out here is what makes these programs free of races.
#ifndef __SANITIZE_THREAD__
TEST_CASE("truth: without one of the mechanisms the same programs show wrong bytes", "[core][truth][unvalidated]") {
  struct Case { Without without; const char* name; };
  for (Case c : {Case{Without::kWaits, "waits between streams"}, Case{Without::kUsedOn, "used_on"},
                 Case{Without::kOwnSource, "sources of early uploads"}, Case{Without::kDownloadWait, "waits for early downloads"}}) {
    INFO("without " << c.name);
    Level two("2");
    std::string wrong;
    // Mostly one of the first programs is wrong; on a busy machine the chips may happen to keep the order for longer.
    uint64_t seed = 1;
    for (; seed <= 600 && wrong.empty(); ++seed) {
      MockScript late(fmt::format("reorder={},delay_ms={}", seed, 2 + seed / 8 % 16).c_str());
      TruthProgram program(seed, c.without);
      for (int i = 0; i < 400 && program.wrong.empty(); ++i) program.step();
      program.check_all();
      wrong = program.wrong;
    }
    UNSCOPED_INFO("after " << seed - 1 << " programs");
    CHECK(wrong != "");
  }
}
#endif
