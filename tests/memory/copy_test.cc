// tests/memory/copy_test.cc: bytes between host, chips and makers.
#include <numeric>
#include <thread>

#include "core/config.h"
#include "memory/chips.h"
#include "memory/traffic.h"

using namespace flhal;
using namespace flhal::test;

static std::vector<uint8_t> pattern(uint64_t n, uint8_t start = 0) {
  std::vector<uint8_t> v(n);
  for (uint64_t i = 0; i < n; ++i) v[i] = uint8_t(start + i * 7 + i / 251);
  return v;
}

TEST_CASE("copy: every pair of places, every size around the staging chunk", "[memory][copy]") {
  constexpr uint64_t kChunk = 1 << 20;
  for (const char* from : {"ram", "chip_a", "chip_b"})
    for (const char* to : {"ram", "chip_a", "chip_b"})
      for (uint64_t n : {uint64_t(1), uint64_t(4097), kChunk - 1, kChunk, kChunk + 1, 3 * kChunk + 5}) {
        CAPTURE(from, to, n);
        Device *a = chip(from), *b = chip(to);
        Stream *sa = a->default_stream, *sb = b->default_stream;
        auto bytes = pattern(n, uint8_t(n));
        uint64_t x = allocate(sa, n), y = allocate(sb, n);
        REQUIRE_OK(copy_bytes(sa, x, number(bytes.data()), n, 0));
        // The stream may be that of either side.
        REQUIRE_OK(copy_bytes(n % 2 ? sa : sb, y, x, n, 0));
        if (a == b || n % 2 == 0) CHECK(bytes_of(sb, y, n) == bytes);
        else CHECK(bytes_of(sb, y, n) == bytes);
        REQUIRE_OK(pool_free(x));
        REQUIRE_OK(pool_free(y));
      }
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("copy: the stream of a third device moves bytes of two others", "[memory][copy]") {
  Stream *a = chip("chip_a")->default_stream, *b = chip("chip_b")->default_stream, *r = chip("ram")->default_stream;
  auto bytes = pattern(10000);
  uint64_t x = allocate(a, 10000), y = allocate(b, 10000);
  REQUIRE_OK(copy_bytes(r, x, number(bytes.data()), 10000, 0));
  REQUIRE_OK(copy_bytes(r, y, x, 10000, 0));
  CHECK(bytes_of(r, y, 10000) == bytes);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
}

TEST_CASE("COPY-03 copy: pageable memory may change as soon as an asynchronous upload returns", "[memory][copy][COPY-03]") {
  Device* d = chip("chip_a");
  Stream* s = d->default_stream;
  constexpr uint64_t kChunk = 1 << 20;
  for (uint64_t n : {uint64_t(1), uint64_t(64), kChunk - 1, kChunk, kChunk + 1, 6 * kChunk}) {
    CAPTURE(n);
    uint64_t x = allocate(s, n);
    auto bytes = pattern(n, 3), kept = bytes;
    {
      // Held work would block an upload that needs more staging than may be in flight; those wait, so are not held.
      std::optional<MockHold> hold;
      if (n <= 4 * kChunk) hold.emplace();
      REQUIRE_OK(copy_bytes(s, x, number(bytes.data()), n, FLHAL_COPY_MAY_RETURN_EARLY));
      std::fill(bytes.begin(), bytes.end(), uint8_t(0xee));
      bytes = std::vector<uint8_t>();
    }
    CHECK(bytes_of(s, x, n) == kept);
    REQUIRE_OK(pool_free(x));
  }
  for (int i = 0; i < 1000; ++i) {
    int64_t values[3] = {i, i + 1, i + 2}, back[3];
    uint64_t x = allocate(s, sizeof values);
    REQUIRE_OK(copy_bytes(s, x, number(values), sizeof values, FLHAL_COPY_MAY_RETURN_EARLY));
    std::fill(values, values + 3, -1);
    REQUIRE_OK(copy_bytes(s, number(back), x, sizeof back, FLHAL_COPY_MAY_RETURN_EARLY));
    REQUIRE(back[0] == i);
    REQUIRE(back[2] == i + 2);
    REQUIRE_OK(pool_free(x));
  }
}

TEST_CASE("copy: pinned memory with MAY_RETURN_EARLY is asynchronous, without it the call waits", "[memory][copy][COPY-04]") {
  Device* d = chip("chip_a");
  Stream* s = d->default_stream;
  auto* pinned = static_cast<uint8_t*>(*pinned_alloc(d, 4096));
  uint64_t x = allocate(s, 4096);
  std::fill(pinned, pinned + 4096, uint8_t(9));
  {
    MockHold hold;
    REQUIRE_OK(copy_bytes(s, x, number(pinned), 4096, FLHAL_COPY_MAY_RETURN_EARLY));
    CHECK(s->query().code() == FLHAL_NOT_READY);
    // A download that returned early has not happened yet; the free of its target waits for it.
    auto* target = static_cast<uint8_t*>(*pinned_alloc(d, 4096));
    std::fill(target, target + 4096, uint8_t(0));
    REQUIRE_OK(copy_bytes(s, number(target), x, 4096, FLHAL_COPY_MAY_RETURN_EARLY));
    CHECK(target[5] == 0);
    REQUIRE_OK(pinned_free(target));
    auto* other = static_cast<uint8_t*>(*pinned_alloc(d, 4096));
    CHECK(other != target);
    REQUIRE_OK(pinned_free(other));
  }
  REQUIRE_OK(s->synchronize());
  std::fill(pinned, pinned + 4096, uint8_t(0));
  REQUIRE_OK(copy_bytes(s, number(pinned), x, 4096, 0));
  CHECK(pinned[4095] == 9);
  REQUIRE_OK(pinned_free(pinned));
  REQUIRE_OK(pool_free(x));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("copy: ranges that leave their allocation or overlap are refused with values, nothing is written", "[memory][copy]") {
  Stream* s = chip("ram")->default_stream;
  uint64_t x = allocate(s, 6144);
  auto bytes = pattern(8192);
  REQUIRE_OK(copy_bytes(s, x, number(bytes.data()), 6144, 0));
  CHECK(copy_bytes(s, x + 4096, number(bytes.data()), 4096, 0).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("flhal_copy: dst range [4096, 8192) leaves the allocation of 6144 bytes") == 0);
  CHECK(copy_bytes(s, number(bytes.data()), x + 6000, 200, 0).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("src range [6000, 6200)") != std::string::npos);
  CHECK(copy_bytes(s, x + 10, x, 100, 0).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("overlap") != std::string::npos);
  CHECK(copy_bytes(s, number(bytes.data()) + 1, number(bytes.data()), 100, 0).code() == FLHAL_E_INVALID);
  CHECK(copy_bytes(s, x, 0, 100, 0).code() == FLHAL_E_INVALID);
  CHECK(copy_bytes(s, x, number(bytes.data()), 100, 16).code() == FLHAL_E_INVALID);
  CHECK(bytes_of(s, x, 6144) == std::vector<uint8_t>(bytes.begin(), bytes.begin() + 6144));
  REQUIRE_OK(copy_bytes(s, x, number(bytes.data()), 0, 0));
  REQUIRE_OK(copy_bytes(s, 0, 0, 0, 0));
  REQUIRE_OK(copy_bytes(s, x + 100, x, 100, 0));   // touching is not overlapping
  REQUIRE_OK(pool_free(x));
  CHECK(copy_bytes(s, x, number(bytes.data()), 1, 0).code() == FLHAL_E_INVALID);
}

TEST_CASE("copy: a copy of size 0 keeps its place in the order", "[memory][copy]") {
  Stream* s = chip("chip_a")->default_stream;
  uint64_t x = allocate(s, 64);
  uint8_t one = 1;
  MockScript slow("delay_ms=10");
  REQUIRE_OK(fill_bytes(s, x, 64, &one, 1));
  REQUIRE_OK(copy_bytes(s, x, x, 0, 0));
  CHECK(bytes_of(s, x, 64) == std::vector<uint8_t>(64, 1));
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("copy: rectangles in every direction", "[memory][copy]") {
  constexpr uint64_t kRow = 100, kRows = 37, kPitch = 160, kOther = 128;
  auto bytes = pattern(kPitch * kRows);
  for (const char* from : {"ram", "chip_a"})
    for (const char* to : {"ram", "chip_a", "chip_b"}) {
      CAPTURE(from, to);
      Stream *a = chip(from)->default_stream, *b = chip(to)->default_stream;
      uint64_t x = allocate(a, kPitch * kRows), y = allocate(b, kOther * kRows);
      REQUIRE_OK(copy_rows(a, x, number(bytes.data()), kRow, kRows, kPitch, kPitch, 0));
      std::vector<uint8_t> zero(kOther * kRows, 0), back(kOther * kRows, 0x55);
      REQUIRE_OK(copy_bytes(b, y, number(zero.data()), zero.size(), 0));
      REQUIRE_OK(copy_rows(b, y, x, kRow, kRows, kOther, kPitch, 0));
      REQUIRE_OK(copy_rows(b, number(back.data()), y, kRow, kRows, kOther, kOther, 0));
      for (uint64_t r = 0; r < kRows; ++r) {
        CHECK(std::equal(back.begin() + long(r * kOther), back.begin() + long(r * kOther + kRow), bytes.begin() + long(r * kPitch)));
        if (r + 1 < kRows) CHECK(back[r * kOther + kRow] == 0x55);   // gaps stay
      }
      CHECK(bytes_of(b, y + kRow, 1)[0] == 0);
      REQUIRE_OK(pool_free(x));
      REQUIRE_OK(pool_free(y));
    }
  Stream* s = chip("ram")->default_stream;
  CHECK(copy_rows(s, 1, 2, 100, 3, 50, 100, 0).code() == FLHAL_E_INVALID);
  CHECK(copy_rows(s, 1, 2, 100, 3, UINT64_MAX / 2 + 1, 100, 0).code() == FLHAL_E_INVALID);
}

TEST_CASE("fill: every pattern size, on chips with and without queues", "[memory][copy]") {
  uint8_t bytes[16];
  std::iota(bytes, bytes + 16, uint8_t(1));
  for (const char* name : {"ram", "chip_a"})
    for (uint32_t n : {1u, 2u, 4u, 8u, 16u}) {
      CAPTURE(name, n);
      Stream* s = chip(name)->default_stream;
      uint64_t x = allocate(s, 4096);
      REQUIRE_OK(fill_bytes(s, x, 4096, bytes, n));
      auto got = bytes_of(s, x, 4096);
      for (uint32_t i = 0; i < 4096; ++i) REQUIRE(got[i] == bytes[i % n]);
      CHECK(fill_bytes(s, x, 4096, bytes, 3).code() == FLHAL_E_INVALID);
      CHECK(fill_bytes(s, x, 4097, bytes, 1).code() == FLHAL_E_INVALID);
      if (n > 1) CHECK(fill_bytes(s, x, n + 1, bytes, n).code() == FLHAL_E_INVALID);
      REQUIRE_OK(fill_bytes(s, x, 0, bytes, n));
      REQUIRE_OK(pool_free(x));
    }
}

TEST_CASE("copy: level 0 finishes everything before it returns", "[memory][copy][level]") {
  Stream* s = chip("chip_a")->default_stream;
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(config_set("async_level", "0"));
  uint64_t x = allocate(s, 4096);
  uint8_t one = 1;
  REQUIRE_OK(fill_bytes(s, x, 4096, &one, 1));
  CHECK(mock_counts().queued == 0);
  auto* pinned = static_cast<uint8_t*>(*pinned_alloc(s->device, 4096));
  pinned[0] = 0;
  REQUIRE_OK(copy_bytes(s, number(pinned), x, 4096, FLHAL_COPY_MAY_RETURN_EARLY));
  CHECK(pinned[0] == 1);
  REQUIRE_OK(config_set("async_level", "1"));
  REQUIRE_OK(pinned_free(pinned));
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("copy: what moves between devices is counted by scope, direction and bytes; other copies are not", "[memory][copy][traffic]") {
  Stream *a = chip("chip_a")->default_stream, *b = chip("chip_b")->default_stream;
  const uint32_t ia = chip("chip_a")->index, ib = chip("chip_b")->index;
  auto bytes = pattern(6000);
  uint64_t x = allocate(a, 6000), z = allocate(a, 6000), y = allocate(b, 6000);
  reset_traffic();
  REQUIRE_OK(copy_bytes(a, x, number(bytes.data()), 6000, 0));
  REQUIRE_OK(copy_bytes(a, z, x, 6000, 0));
  CHECK(traffic_rows().empty());
  const uint32_t outer = enter_scope("head");
  REQUIRE_OK(copy_bytes(a, y, x, 6000, 0));
  REQUIRE_OK(copy_bytes(b, y, x, 1000, 0));
  std::thread([&] { REQUIRE_OK(copy_bytes(b, x, y, 10, 0)); }).join();   // another thread is in no scope
  const uint32_t head = enter_scope("tail");
  REQUIRE_OK(copy_rows(b, x, y, 100, 5, 200, 300, 0));
  leave_scope(head);
  CHECK(copy_bytes(b, x, y, 1 << 20, 0).code() == FLHAL_E_INVALID);      // refused: not counted
  leave_scope(outer);
  auto rows = traffic_rows();
  REQUIRE(rows.size() == 3);
  CHECK((rows[0].scope == "head" && rows[0].from == ia && rows[0].to == ib && rows[0].bytes == 7000 && rows[0].copies == 2));
  CHECK((rows[1].scope == "tail" && rows[1].from == ib && rows[1].to == ia && rows[1].bytes == 500 && rows[1].copies == 1));
  CHECK((rows[2].scope == "" && rows[2].bytes == 10));
  CHECK((rows[0].ns > 0 && rows[0].wait_ns <= rows[0].ns));
  reset_traffic();
  CHECK(traffic_rows().empty());
  for (uint64_t p : {x, y, z}) REQUIRE_OK(pool_free(p));
}
