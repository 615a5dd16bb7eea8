// tests/memory/host_access_test.cc: views of device memory for the host, and pinned memory.
#include <algorithm>
#include <memory>

#include "memory/chips.h"
#include "memory/tiny_device.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("host access: staged and mapped views read and write, several at once", "[memory][host_access]") {
  for (const char* name : {"ram", "chip_a"}) {
    CAPTURE(name);
    Stream* s = chip(name)->default_stream;
    uint64_t x = allocate(s, 8192);
    uint8_t one = 1;
    REQUIRE_OK(fill_bytes(s, x, 8192, &one, 1));
    auto a = host_begin(s, x, 4096, FLHAL_READ | FLHAL_WRITE);
    REQUIRE(a.ok());
    auto b = host_begin(s, x + 4100, 100, FLHAL_WRITE | FLHAL_DISCARD);
    REQUIRE(b.ok());
    CHECK(a->ticket != b->ticket);
    CHECK(host_views_open() == 2);
    auto* p = static_cast<uint8_t*>(a->host);
    CHECK(p[4095] == 1);
    p[0] = 42;
    std::memset(b->host, 7, 100);
    REQUIRE_OK(host_end(s, b->ticket));
    REQUIRE_OK(host_end(s, a->ticket));
    CHECK(host_end(s, a->ticket).code() == FLHAL_E_INVALID);
    CHECK(host_end(s, 12345).code() == FLHAL_E_INVALID);
    auto got = bytes_of(s, x, 8192);
    CHECK(got[0] == 42);
    CHECK(got[4099] == 1);
    CHECK(got[4100] == 7);
    CHECK(got[4199] == 7);
    CHECK(got[4200] == 1);
    auto read = host_begin(s, x, 10, FLHAL_READ);
    REQUIRE(read.ok());
    REQUIRE_OK(host_end(s, read->ticket));
    CHECK(host_begin(s, x + 8000, 1000, FLHAL_READ).status().code() == FLHAL_E_INVALID);
    CHECK(host_begin(s, x, 10, FLHAL_DISCARD).status().code() == FLHAL_E_INVALID);
    CHECK(host_begin(s, x, 10, FLHAL_READ | FLHAL_DISCARD).status().code() == FLHAL_E_INVALID);
    auto nothing = host_begin(s, 0, 0, FLHAL_READ);
    REQUIRE(nothing.ok());
    REQUIRE_OK(host_end(s, nothing->ticket));
    REQUIRE_OK(pool_free(x));
    CHECK(host_views_open() == 0);
  }
}

TEST_CASE("host access: of equal views of one range each keeps its own bytes until it ends", "[memory][host_access]") {
  for (const char* name : {"ram", "chip_a"}) {
    CAPTURE(name);
    Stream* s = chip(name)->default_stream;
    uint64_t x = allocate(s, 256);
    uint8_t one = 1;
    REQUIRE_OK(fill_bytes(s, x, 256, &one, 1));
    auto a = host_begin(s, x, 256, FLHAL_READ);
    auto b = host_begin(s, x, 256, FLHAL_READ);
    REQUIRE((a.ok() && b.ok()));
    REQUIRE_OK(host_end(s, b->ticket));
    std::unique_ptr<uint8_t[]> later(new uint8_t[256]);   // takes the memory of a view that ended too early
    std::memset(later.get(), 9, 256);
    auto* p = static_cast<const uint8_t*>(a->host);
    CHECK(std::count(p, p + 256, 1) == 256);
    REQUIRE_OK(host_end(s, a->ticket));
    REQUIRE_OK(pool_free(x));
  }
}

TEST_CASE("host access: a view waits for late work of its stream", "[memory][host_access]") {
  Stream* s = chip("chip_a")->default_stream;
  MockScript slow("delay_ms=15");
  uint64_t x = allocate(s, 64);
  uint8_t three = 3;
  REQUIRE_OK(fill_bytes(s, x, 64, &three, 1));
  auto view = host_begin(s, x, 64, FLHAL_READ | FLHAL_WRITE);
  REQUIRE(view.ok());
  CHECK(static_cast<uint8_t*>(view->host)[63] == 3);
  static_cast<uint8_t*>(view->host)[63] = 4;
  REQUIRE_OK(host_end(s, view->ticket));
  CHECK(bytes_of(s, x + 63, 1)[0] == 4);
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("host access: a chip whose memory the host sees is aliased, with and without slots", "[memory][host_access]") {
  TinyDevice d("alias", FLHAL_CAP_HOST_VISIBLE | FLHAL_CAP_HOST_COHERENT);
  d.chip.host_visible = true;
  uint64_t x = d.alloc(100);
  auto view = host_begin(d.stream(), x + 3, 10, FLHAL_READ | FLHAL_WRITE);
  REQUIRE(view.ok());
  CHECK(number(view->host) == x + 3);
  REQUIRE_OK(host_end(d.stream(), view->ticket));
  CHECK(d.chip.n_copies == 0);
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("host access: staged bytes are as aligned as the address, up to 64", "[memory][host_access]") {
  TinyDevice d("staged");
  uint64_t x = d.alloc(1000);
  for (uint64_t offset : {0ull, 4ull, 32ull, 65ull}) {
    auto view = host_begin(d.stream(), x + offset, 100, FLHAL_WRITE | FLHAL_DISCARD);
    REQUIRE(view.ok());
    CHECK(number(view->host) % 64 == (x + offset) % 64);
    REQUIRE_OK(host_end(d.stream(), view->ticket));
  }
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("fill: what the plugin refuses is written by the host", "[memory][copy][COPY-06]") {
  TinyDevice d("no_fill");
  d.chip.fill_refused = true;
  uint64_t x = d.alloc(3 << 20);
  const uint32_t word = 0x01020304;
  REQUIRE_OK(fill_bytes(d.stream(), x, 3 << 20, &word, 4));
  uint32_t last = 0;
  REQUIRE_OK(copy_bytes(d.stream(), number(&last), x + (3 << 20) - 4, 4, 0));
  CHECK(last == word);
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("pinned: any byte of a live block is pinned, nothing else is", "[memory][pinned][COPY-04]") {
  for (Device* device : {static_cast<Device*>(nullptr), chip("ram"), chip("chip_a")}) {
    for (uint64_t bytes : {1ull, 1000ull, 100000ull, 5000000ull}) {
      CAPTURE(bytes);
      auto got = pinned_alloc(device, bytes);
      REQUIRE(got.ok());
      auto* p = static_cast<char*>(*got);
      CHECK(number(p) % 256 == 0);
      std::memset(p, 1, bytes);
      CHECK(is_pinned(p));
      CHECK(is_pinned(p + bytes - 1));
      CHECK_FALSE(is_pinned(p + bytes));
      CHECK(is_pinned_range(p, bytes));
      CHECK_FALSE(is_pinned_range(p, bytes + 1));
      REQUIRE_OK(pinned_free(p));
      CHECK_FALSE(is_pinned(p));
      CHECK(pinned_free(p).code() == FLHAL_E_INVALID);
    }
  }
  int on_stack;
  CHECK_FALSE(is_pinned(&on_stack));
  CHECK_FALSE(is_pinned(nullptr));
  REQUIRE_OK(pinned_free(nullptr));
  auto zero = pinned_alloc(nullptr, 0);
  REQUIRE(zero.ok());
  REQUIRE_OK(pinned_free(*zero));
}

TEST_CASE("pinned: a block named on a stream is not handed out before that stream is done", "[memory][pinned]") {
  Device* d = chip("chip_a");
  Stream* s = d->default_stream;
  uint64_t x = allocate(s, 4096);
  auto* p = static_cast<uint8_t*>(*pinned_alloc(nullptr, 4096));
  std::memset(p, 5, 4096);
  {
    MockHold hold;
    REQUIRE_OK(copy_bytes(s, x, number(p), 4096, FLHAL_COPY_MAY_RETURN_EARLY));
    REQUIRE_OK(pinned_used_on(p + 100, s));
    REQUIRE_OK(pinned_free(p));
    for (int i = 0; i < 40; ++i) {
      auto* q = static_cast<uint8_t*>(*pinned_alloc(nullptr, 4096));
      REQUIRE(q != p);
      std::memset(q, 0xee, 4096);
      REQUIRE_OK(pinned_free(q));
    }
  }
  CHECK(bytes_of(s, x, 4096) == std::vector<uint8_t>(4096, 5));
  REQUIRE_OK(pool_free(x));
}
