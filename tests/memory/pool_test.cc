// tests/memory/pool_test.cc: one thread, one device without queues: sizes, reuse, figures, limits, errors.
#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "core/config.h"
#include "memory/tiny_device.h"
#include "support/rounds.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("pool: live blocks never overlap and every invariant holds, in a random order of sizes", "[memory][pool]") {
  TinyDevice d("random", 0, 512 << 20);
  REQUIRE_OK(config_set("memory_pool_size@random", "100%"));
  std::mt19937 random(7);
  std::map<uint64_t, uint64_t> live;
  uint64_t requested = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    if (live.size() < 200 && random() % 2) {
      uint64_t bytes = random() % 16 == 0 ? random() % (4 << 20) + 1 : random() % 3 == 0 ? random() % 300000 + 1 : random() % 4000 + 1;
      uint64_t x = d.alloc(bytes);
      REQUIRE(x);
      auto next = live.lower_bound(x);
      if (next != live.end()) REQUIRE(x + bytes <= next->first);
      if (next != live.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= x);
      live[x] = bytes;
      requested += bytes;
    } else if (!live.empty()) {
      auto victim = std::next(live.begin(), long(random() % live.size()));
      REQUIRE_OK(pool_free(victim->first));
      requested -= victim->second;
      live.erase(victim);
    }
    if (round % 500 == 0) {
      REQUIRE_OK(d.pool()->check());
      REQUIRE(d.stats().requested == requested);
      REQUIRE(d.stats().n_live == live.size());
    }
  }
  for (auto& [x, bytes] : live) REQUIRE_OK(pool_free(x));
  REQUIRE_OK(d.pool()->check());
  CHECK(d.stats().requested == 0);
  CHECK(d.stats().allocated == 0);
  REQUIRE_OK(d.device.pool->trim());
  CHECK(d.stats().reserved == 0);
  CHECK(d.chip.live.empty());
}

TEST_CASE("pool: a freed block comes back for the next request of its size", "[memory][pool]") {
  TinyDevice d("reuse");
  for (uint64_t bytes : {4ull, 4000ull, 40000ull, 400000ull, 4000000ull}) {
    uint64_t x = d.alloc(bytes);
    REQUIRE_OK(pool_free(x));
    CHECK(d.alloc(bytes) == x);
    REQUIRE_OK(pool_free(x));
  }
}

TEST_CASE("pool: 0 bytes is address 0, which may be freed", "[memory][pool]") {
  TinyDevice d("zero");
  auto got = pool_allocate(d.stream(), 0);
  REQUIRE(got.ok());
  CHECK(*got == 0);
  REQUIRE_OK(pool_free(0));
}

TEST_CASE("pool: figures and peaks are exact", "[memory][pool]") {
  TinyDevice d("figures");
  uint64_t a = d.alloc(1000), b = d.alloc(100000), c = d.alloc(1 << 20);
  auto s = d.stats();
  CHECK(s.requested == 1000 + 100000 + (1 << 20));
  CHECK(s.requested_peak == s.requested);
  CHECK(s.allocated >= s.requested);
  CHECK(s.reserved >= s.allocated);
  CHECK(s.n_live == 3);
  REQUIRE_OK(pool_free(c));
  REQUIRE_OK(pool_free(b));
  CHECK(d.stats().requested == 1000);
  CHECK(d.stats().requested_peak == s.requested);
  d.device.pool->reset_peaks();
  CHECK(d.stats().requested_peak == 1000);
  uint64_t e = d.alloc(500);
  CHECK(d.stats().requested_peak == 1500);
  REQUIRE_OK(pool_free(e));
  REQUIRE_OK(pool_free(a));
  CHECK(d.stats().n_frees == d.stats().n_allocations);
  CHECK(d.stats().limit == 32 << 20);
  CHECK(d.stats().device_total == 64 << 20);
  // An older caller's struct is written no further than it says.
  flhal_memory_stats old{};
  old.struct_size = 24;
  old.allocated = 77;
  d.device.pool->stats(&old);
  CHECK(old.allocated == 77);
}

TEST_CASE("pool: a wrong free is told and changes nothing", "[memory][pool]") {
  TinyDevice d("wrong_free");
  for (uint64_t bytes : {100ull, 100000ull, 1000000ull}) {
    uint64_t x = d.alloc(bytes);
    CHECK(pool_free(x + 8).code() == FLHAL_E_INVALID);
    CHECK(last_error_text().find("give its first byte") != std::string::npos);
    REQUIRE_OK(pool_free(x));
    CHECK(pool_free(x).code() == FLHAL_E_INVALID);
    CHECK(last_error_text().find("twice") != std::string::npos);
    REQUIRE_OK(d.pool()->check());
  }
  int on_stack;
  CHECK(pool_free(reinterpret_cast<uint64_t>(&on_stack)).code() == FLHAL_E_INVALID);
  CHECK(d.stats().n_live == 0);
}

TEST_CASE("pool: the limit is a ceiling that can be changed while running", "[memory][pool]") {
  TinyDevice d("ceiling", 0, 64 << 20);
  REQUIRE_OK(config_set("memory_pool_size@ceiling", "8MiB"));
  CHECK(d.stats().limit == 8 << 20);
  CHECK(d.stats().reserved == 0);               // a ceiling, not a preallocation
  uint64_t a = d.alloc(6 << 20);
  REQUIRE(a);
  CHECK(d.alloc(4 << 20) == 0);
  REQUIRE_OK(config_set("memory_pool_size@ceiling", "25%"));
  uint64_t b = d.alloc(4 << 20);
  CHECK(b);
  CHECK(d.stats().reserved <= d.stats().limit);
  REQUIRE_OK(pool_free(a));
  REQUIRE_OK(pool_free(b));
}

TEST_CASE("pool: small blocks are found on a small chip, whatever span their class would like", "[memory][pool]") {
  TinyDevice d("small_chip", 0, 512 << 10);
  REQUIRE_OK(config_set("memory_pool_size@small_chip", "100%"));
  std::vector<uint64_t> blocks;
  for (uint64_t bytes : {200, 1000, 5000, 6000, 10000}) {     // spans of their classes: twice 64 KiB and three times 256 KiB
    INFO(bytes << " bytes");
    blocks.push_back(d.alloc(bytes));
    REQUIRE(blocks.back());
  }
  REQUIRE_OK(d.pool()->check());
  for (uint64_t block : blocks) REQUIRE_OK(pool_free(block));
  uint64_t all = d.alloc(512 << 10);                          // nothing of it is lost afterwards
  CHECK(all);
  REQUIRE_OK(pool_free(all));
  REQUIRE_OK(d.pool()->check());
}

TEST_CASE("MEM-02 pool: out of memory with plenty reserved names every figure and leaves the process usable", "[memory][pool][MEM-02]") {
  TinyDevice d("fragmented", 0, 16 << 20);
  REQUIRE_OK(config_set("memory_pool_size@fragmented", "100%"));
  // Fill with blocks of 1 MiB, then free every second one: half is free, nothing above 1 MiB fits.
  std::vector<uint64_t> blocks;
  while (uint64_t x = d.alloc(1 << 20)) blocks.push_back(x);
  REQUIRE(blocks.size() == 16);
  for (size_t i = 0; i < blocks.size(); i += 2) REQUIRE_OK(pool_free(blocks[i]));
  auto got = pool_allocate(d.stream(), 6 << 20);
  REQUIRE_FALSE(got.ok());
  CHECK(got.status().code() == FLHAL_E_OUT_OF_MEMORY);
  std::string text = last_error_text();
  INFO(text);
  for (const char* part : {"out of memory on fragmented", "requested 6.00 MiB (6291456 bytes)", "allocated 8.00 MiB (8388608 bytes)",
                           "reserved ", "largest free block ", "limit 16.00 MiB", "; "})
    CHECK(text.find(part) != std::string::npos);
  CHECK(d.stats().n_out_of_memory >= 1);
  CHECK(d.stats().n_retries >= 1);
  uint64_t small = d.alloc(100);
  CHECK(small);
  REQUIRE_OK(pool_free(small));
  for (size_t i = 1; i < blocks.size(); i += 2) REQUIRE_OK(pool_free(blocks[i]));
  uint64_t whole = d.alloc(14 << 20);           // joined again, slabs given back and taken in one piece
  CHECK(whole);
  REQUIRE_OK(pool_free(whole));
  REQUIRE_OK(d.pool()->check());
  auto absurd = pool_allocate(d.stream(), UINT64_MAX - 5);
  CHECK(absurd.status().code() == FLHAL_E_OUT_OF_MEMORY);
}

TEST_CASE("MEM-01 pool: caches above the pool are asked before out of memory is told", "[memory][pool][MEM-01]") {
  static uint64_t kept = 0;
  static Device* of = nullptr;
  TinyDevice d("reclaim", 0, 8 << 20);
  REQUIRE_OK(config_set("memory_pool_size@reclaim", "100%"));
  of = &d.device;
  kept = d.alloc(6 << 20);
  static bool added = false;
  if (!added) add_reclaimer([](Device* device) {
    if (device == of && kept) (void)pool_free(std::exchange(kept, 0));
  });
  added = true;
  uint64_t x = d.alloc(5 << 20);
  CHECK(x);
  CHECK(kept == 0);
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("MEM-04 pool: alternating sizes on two streams keep reserved within four times the peak", "[memory][pool][MEM-04]") {
  TinyDevice d("alternate", 0, 256 << 20);
  Stream* streams[2] = {d.stream(), *make_stream(&d.device, 0)};
  std::mt19937 random(3);
  std::vector<uint64_t> live[2];
  for (int round = 0; round < rounds(10000); ++round) {
    int s = round % 2;
    uint64_t bytes = s ? (random() % 64 + 1) * 8192 : (random() % 32 + 1) * 20000;
    auto got = pool_allocate(streams[s], bytes);
    REQUIRE(got.ok());
    live[s].push_back(*got);
    if (live[s].size() > 10) {
      size_t victim = random() % live[s].size();
      REQUIRE_OK(pool_free(live[s][victim]));
      live[s].erase(live[s].begin() + long(victim));
    }
  }
  auto s = d.stats();
  INFO("reserved peak " << s.reserved_peak << ", requested peak " << s.requested_peak);
  CHECK(s.reserved_peak <= 4 * s.requested_peak);
  CHECK(s.reserved_peak <= s.limit);
  for (auto& list : live)
    for (uint64_t x : list) REQUIRE_OK(pool_free(x));
  REQUIRE_OK(d.pool()->check());
  REQUIRE_OK(release_stream(streams[1]));
}

TEST_CASE("pool: memory from before a reset is dead: not found, freed silently", "[memory][pool]") {
  TinyDevice d("reset");
  uint64_t small = d.alloc(100), big = d.alloc(1 << 20);
  close_streams(&d.device);
  close_pool(&d.device);
  Located at;
  CHECK(AddressMap::locate_range(small, 1, "flhal_copy", "src", &at).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("before its reset") != std::string::npos);
  REQUIRE_OK(pool_free(small));
  REQUIRE_OK(pool_free(big));
  CHECK(d.chip.live.empty());
  d.device.default_stream = *make_stream(&d.device, 0);
  d.device.pool = *make_pool(&d.device);
  uint64_t again = d.alloc(100);
  CHECK(again);
  REQUIRE_OK(pool_free(again));
}
