// tests/memory/pool_streams_test.cc: memory in stream order, on chips whose work is late.
#include "memory/block_pool.h"
#include "memory/chips.h"
#include "support/rounds.h"

using namespace flhal;
using namespace flhal::test;

static const uint8_t kOne = 1, kTwo = 2;

TEST_CASE("pool: a block freed with work in flight comes back at once on its stream, not on another", "[memory][pool][streams]") {
  Device* d = chip("chip_a");
  Stream* s = d->default_stream;
  Stream* t = *make_stream(d, 0);
  REQUIRE_OK(d->pool->trim());
  for (uint64_t bytes : {4096ull, 100000ull, 1000000ull}) {
    CAPTURE(bytes);
    MockHold hold;
    uint64_t x = allocate(s, bytes);
    REQUIRE_OK(fill_bytes(s, x, bytes / 16 * 16, &kOne, 1));
    REQUIRE_OK(pool_free(x));
    uint64_t other = allocate(t, bytes);
    CHECK(other != x);
    uint64_t same = allocate(s, bytes);
    CHECK(same == x);
    REQUIRE_OK(pool_free(other));
    REQUIRE_OK(pool_free(same));
  }
  REQUIRE_OK(synchronize_device(d));
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("pool: a block used on another stream waits for it after the free", "[memory][pool][streams]") {
  Device* d = chip("chip_a");
  Stream* s = d->default_stream;
  Stream* t = *make_stream(d, 0);
  for (uint64_t bytes : {4096ull, 1000000ull}) {
    CAPTURE(bytes);
    REQUIRE_OK(synchronize_device(d));
    uint64_t x = allocate(s, bytes);
    {
      MockHold hold;
      REQUIRE_OK(fill_bytes(t, x, bytes, &kOne, 1));
      REQUIRE_OK(pool_used_on(x, t));
      REQUIRE_OK(pool_free(x));
      CHECK(stats_of(d).pending_free >= bytes);
      Located at;
      CHECK_FALSE(AddressMap::locate_range(x, 1, "test", "x", &at).ok());
      uint64_t y = allocate(s, bytes);
      CHECK(y != x);
      REQUIRE_OK(pool_free(y));
    }
    REQUIRE_OK(t->synchronize());
    retire_poll();
    CHECK(stats_of(d).pending_free == 0);
  }
  REQUIRE_OK(release_stream(t));
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
}

TEST_CASE("MEM-01 pool: allocation waits for queued work before it fails", "[memory][pool][MEM-01]") {
  Device* d = chip("chip_b");
  Stream* s = d->default_stream;
  Stream* t = *make_stream(d, 0);
  REQUIRE_OK(d->pool->trim());
  MockScript slow("delay_ms=20");
  REQUIRE_OK(config_set("memory_pool_size@chip_b", "100%"));
  std::vector<uint64_t> blocks;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(allocate(t, 10 << 20));
    REQUIRE_OK(fill_bytes(t, blocks.back(), 10 << 20, &kTwo, 1));
  }
  for (int i = 0; i < 3; ++i) REQUIRE_OK(pool_used_on(blocks[size_t(i)], s));
  for (uint64_t x : blocks) REQUIRE_OK(pool_free(x));
  uint64_t big = allocate(s, 38 << 20);          // 60 % of 64 MiB, on another stream than the one that is busy
  REQUIRE_OK(fill_bytes(s, big, 38 << 20, &kOne, 1));
  CHECK(bytes_of(s, big + (30 << 20), 1)[0] == 1);
  CHECK(stats_of(d).n_out_of_memory == 0);
  REQUIRE_OK(pool_free(big));
  REQUIRE_OK(release_stream(t));
  REQUIRE_OK(synchronize_device(d));
  REQUIRE_OK(d->pool->trim());
  CHECK(stats_of(d).reserved == 0);
  CHECK(mock_counts(1).live_slab_bytes == 0);
  REQUIRE_OK(config_set("memory_pool_size@chip_b", "50%"));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("MEM-04 pool: memory of idle streams is joined before the pool grows", "[memory][pool][MEM-04]") {
  Device* d = chip("chip_a");
  REQUIRE_OK(synchronize_device(d));
  REQUIRE_OK(d->pool->trim());
  Stream* streams[4];
  for (Stream*& s : streams) s = *make_stream(d, 0);
  uint64_t blocks[4];
  for (int i = 0; i < 4; ++i) {
    blocks[i] = allocate(streams[i], 1 << 20);
    REQUIRE_OK(fill_bytes(streams[i], blocks[i], 1 << 20, &kOne, 1));
  }
  for (uint64_t x : blocks) REQUIRE_OK(pool_free(x));
  uint64_t reserved = stats_of(d).reserved;
  REQUIRE_OK(synchronize_device(d));
  uint64_t whole = allocate(streams[0], 2 << 20);  // needs the memory of two streams that are idle now
  CHECK(stats_of(d).reserved == reserved);
  REQUIRE_OK(pool_free(whole));
  for (Stream* s : streams) REQUIRE_OK(release_stream(s));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("pool: 600 rounds of late work on three streams give right bytes and no early reuse", "[memory][pool][streams][stress]") {
  Device* d = chip("chip_a");
  MockScript late("reorder=5,delay_ms=0");
  Stream* streams[3];
  for (Stream*& s : streams) s = *make_stream(d, 0);
  std::vector<std::pair<uint64_t, uint8_t>> live[3];
  for (int round = 0; round < rounds(600); ++round) {
    int i = round % 3;
    uint64_t bytes = uint64_t(round % 7 + 1) * 1536;
    uint64_t x = allocate(streams[i], bytes);
    uint8_t value = uint8_t(round);
    REQUIRE_OK(fill_bytes(streams[i], x, bytes, &value, 1));
    live[i].push_back({x, value});
    if (live[i].size() > 4) {
      auto [address, expected] = live[i].front();
      live[i].erase(live[i].begin());
      if (round % 20 == 0) CHECK(bytes_of(streams[i], address, 1536) == std::vector<uint8_t>(1536, expected));
      REQUIRE_OK(pool_free(address));
    }
  }
  for (int i = 0; i < 3; ++i)
    for (auto [address, expected] : live[i]) {
      CHECK(bytes_of(streams[i], address, 1536) == std::vector<uint8_t>(1536, expected));
      REQUIRE_OK(pool_free(address));
    }
  for (Stream* s : streams) REQUIRE_OK(release_stream(s));
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
  CHECK(mock_counts().misuse == 0);
}
