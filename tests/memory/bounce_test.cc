// tests/memory/bounce_test.cc: large copies between chips that see neither the other's memory nor the host's.
//
// The same file runs in the world of tests/bounce, which has an OpenCL chip beside these.
#include "memory/bounce.h"

#include <chrono>
#include <random>
#include <thread>

#include "core/config.h"
#include "memory/chips.h"

using namespace flhal;
using namespace flhal::test;

namespace {

std::vector<uint8_t> noise(uint64_t n, uint32_t seed) {
  std::vector<uint8_t> v(n);
  std::mt19937 random(seed);
  for (uint64_t i = 0; i < n; ++i) v[i] = uint8_t(random());
  return v;
}

// The chips of this world, those that bounce.
std::vector<std::string> names() {
  std::vector<std::string> found;
  for (Device* d : devices())
    if (!d->has(FLHAL_CAP_HOST_COHERENT)) found.push_back(d->name);
  return found;
}

struct Level {
  explicit Level(const char* level) { REQUIRE_OK(config_set("async_level", level)); }
  ~Level() { (void)config_set("async_level", "1"); }
};

// Two chips, each with a block of `n` bytes; `bytes` lie on the first one.
struct Pair {
  Stream *from, *to;
  uint64_t n, x, y;
  std::vector<uint8_t> bytes;
  Pair(const std::string& a, const std::string& b, uint64_t n) : from(chip(a.c_str())->default_stream), to(chip(b.c_str())->default_stream), n(n) {
    x = allocate(from, n);
    y = allocate(to, n);
    bytes = noise(n, uint32_t(n));
    REQUIRE_OK(copy_bytes(from, x, number(bytes.data()), n, 0));
    uint8_t zero = 0;
    REQUIRE_OK(fill_bytes(to, y, n, &zero, 1));
    REQUIRE_OK(to->synchronize());
  }
  ~Pair() {
    (void)pool_free(x);
    (void)pool_free(y);
  }
  Pair(const Pair&) = delete;
};

bool becomes(const std::function<bool()>& true_now) {
  for (int i = 0; i < 5000; ++i) {
    if (true_now()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace

TEST_CASE("bounce: whatever size, whichever chips, late and reordered, at every level: the bytes arrive", "[memory][bounce]") {
  for (const char* level : {"0", "1", "2"}) {
    Level now(level);
    for (const std::string& a : names())
      for (const std::string& b : names()) {
        if (a == b) continue;
        for (uint64_t n : {kChunkBytes + 1, 2 * kChunkBytes, 5 * kChunkBytes + 4099}) {
          CAPTURE(level, a, b, n);
          Pair pair(a, b, n);
          MockScript late("reorder=7,delay_ms=2");
          REQUIRE_OK(copy_bytes(pair.to, pair.y, pair.x, n, 0));
          REQUIRE((bytes_of(pair.to, pair.y, n) == pair.bytes));
        }
      }
  }
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("bounce: rectangles whose rows are shorter and longer than a piece, with gaps that stay", "[memory][bounce]") {
  for (auto [row, rows, src_pitch, dst_pitch] : {std::array<uint64_t, 4>{1000, 3001, 1024, 1001}, {kChunkBytes + 5, 3, kChunkBytes + 64, kChunkBytes + 6}}) {
    for (const std::string& a : names())
      for (const std::string& b : names()) {
        if (a == b) continue;
        CAPTURE(a, b, row, rows);
        Pair pair(a, b, rows * std::max(src_pitch, dst_pitch));
        MockScript late("reorder=3,delay_ms=1");
        REQUIRE_OK(copy_rows(pair.to, pair.y, pair.x, row, rows, dst_pitch, src_pitch, 0));
        auto got = bytes_of(pair.to, pair.y, pair.n);
        bool rows_are = true, gaps_stay = true;
        for (uint64_t r = 0; r < rows; ++r) {
          rows_are = rows_are && std::equal(got.begin() + long(r * dst_pitch), got.begin() + long(r * dst_pitch + row), pair.bytes.begin() + long(r * src_pitch));
          if (r + 1 < rows) gaps_stay = gaps_stay && got[r * dst_pitch + row] == 0;
        }
        CHECK(rows_are);
        CHECK(gaps_stay);
      }
  }
}

TEST_CASE("bounce: a piece comes down while the one before goes up", "[memory][bounce]") {
  Pair pair("chip_a", "chip_b", 4 * kChunkBytes);
  Status done;
  {
    MockHold hold;
    const uint64_t before = mock_counts().copies;
    std::thread copy([&] { done = copy_bytes(pair.to, pair.y, pair.x, pair.n, 0); });
    CHECK(becomes([&] { return mock_counts().copies == before + 1 && mock_counts().queued == 2; }));   // piece 0 down, and its event
    hold.step(2);
    CHECK(becomes([&] { return mock_counts().copies == before + 3; }));   // piece 0 goes up, piece 1 comes down: both wait
    CHECK(mock_counts().queued >= 2);
    mock_control().release();
    copy.join();
  }
  REQUIRE_OK(done);
  CHECK((bytes_of(pair.to, pair.y, pair.n) == pair.bytes));
}

namespace {

// bounce() over public calls, with one of its waits left out.
enum class Without { kNothing, kWaitDown, kWaitFree };
struct Ways {
  Pair& pair;
  Without without;
  uint8_t* buffers[2];
  Event up[2] = {Event(0), Event(0)};
  Ways(Pair& pair, Without without) : pair(pair), without(without) {
    for (auto& b : buffers) b = static_cast<uint8_t*>(*pinned_alloc(pair.to->device, kChunkBytes));
  }
  ~Ways() {
    (void)pair.from->synchronize();
    (void)pair.to->synchronize();
    for (auto* b : buffers) (void)pinned_free(b);
  }
  Status wait_free(uint64_t b) { return without == Without::kWaitFree ? Status() : up[b].synchronize(); }
  Status down(uint64_t b, uint64_t, uint64_t offset, const Rect& piece) {
    return copy_bytes(pair.from, number(buffers[b]), pair.x + offset, piece.bytes, FLHAL_COPY_MAY_RETURN_EARLY);
  }
  Status wait_down() { return without == Without::kWaitDown ? Status() : pair.from->synchronize(); }
  Status up_(uint64_t b, uint64_t offset, uint64_t bytes) {
    FLHAL_TRY(copy_bytes(pair.to, pair.y + offset, number(buffers[b]), bytes, FLHAL_COPY_MAY_RETURN_EARLY));
    return up[b].record(pair.to);
  }
};
struct WaysOf : Ways {
  using Ways::Ways;
  Status up(uint64_t b, uint64_t, uint64_t offset, const Rect& piece) { return up_(b, offset, piece.bytes); }
};

}  // namespace

TEST_CASE("bounce: without one of its waits wrong bytes arrive", "[memory][bounce][unvalidated]") {
  const uint64_t n = 6 * kChunkBytes;
#ifdef __SANITIZE_THREAD__
  const std::vector<Without> cases = {Without::kNothing};   // a copy without one of its waits is a race, and shall be one
#else
  const std::vector<Without> cases = {Without::kNothing, Without::kWaitDown, Without::kWaitFree};
#endif
  for (Without without : cases) {
    bool wrong = false;
    for (int seed = 1; seed <= (without == Without::kNothing ? 3 : 40) && !wrong; ++seed) {
      Pair pair("chip_a", "chip_b", n);
      WaysOf ways(pair, without);
      MockScript late(fmt::format("reorder={},delay_ms=4", seed).c_str());
      REQUIRE_OK(bounce(Rect{n, 1, n, n}, ways));
      REQUIRE_OK(pair.from->synchronize());
      REQUIRE_OK(pair.to->synchronize());
      wrong = bytes_of(pair.to, pair.y, n) != pair.bytes;
    }
    CAPTURE(int(without));
    CHECK(wrong == (without != Without::kNothing));
  }
}

TEST_CASE("bounce: a failure in the middle is told, nothing is under way any more, and the next copy is right", "[memory][bounce][failure]") {
  for (const char* level : {"0", "1", "2"})
    for (const char* script : {"fail_work=copy:5", "fail_work=copy:6", "fail_call=copy:5:failed", "fail_call=copy:6:failed"}) {
      CAPTURE(level, script);
      Level now(level);
      Pair pair("chip_a", "chip_b", 6 * kChunkBytes);
      const uint64_t held = stats_of(pair.to->device).pending_free;
      {
        MockScript failing((std::string(script) + ",delay_ms=1").c_str());
        Status done = copy_bytes(pair.to, pair.y, pair.x, pair.n, 0);
        const std::string why = last_error_text();
        INFO(why);
        CHECK(done.code() == FLHAL_E_OP_FAILED);
        CHECK(why.find("copy") != std::string::npos);
        CHECK(mock_counts().queued == 0);
      }
      for (Stream* s : {pair.from, pair.to}) s->clear_error();
      REQUIRE_OK(copy_bytes(pair.to, pair.y, pair.x, pair.n, 0));
      CHECK((bytes_of(pair.to, pair.y, pair.n) == pair.bytes));
      CHECK(stats_of(pair.to->device).pending_free == held);
    }
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("bounce: a chip that is lost in the middle ends the copy; the other one goes on", "[memory][bounce][failure]") {
  for (uint32_t lost : {0u, 1u}) {
    CAPTURE(lost);
    auto pair = std::make_unique<Pair>("chip_a", "chip_b", 6 * kChunkBytes);
    {
      MockScript losing(lost == 0 ? "lose_after=3@a,delay_ms=1" : "lose_after=3@b,delay_ms=1");
      CHECK(copy_bytes(pair->to, pair->y, pair->x, pair->n, 0).code() == FLHAL_E_DEVICE_LOST);
      const std::string why = last_error_text();
      INFO(why);
      CHECK(why.find(lost == 0 ? "chip_a" : "chip_b") != std::string::npos);
      CHECK(why.find("lost") != std::string::npos);
    }
    Stream* well = lost == 0 ? pair->to : pair->from;
    Device* gone = (lost == 0 ? pair->from : pair->to)->device;
    CHECK(gone->lost());
    CHECK(well->usable());
    CHECK(bytes_of(well, lost == 0 ? pair->y : pair->x, 64).size() == 64);
    pair.reset();
    REQUIRE_OK(gone->reset());
    Pair again("chip_a", "chip_b", 2 * kChunkBytes);
    REQUIRE_OK(copy_bytes(again.to, again.y, again.x, again.n, 0));
    CHECK((bytes_of(again.to, again.y, again.n) == again.bytes));
  }
}
