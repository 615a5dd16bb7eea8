// tests/memory/pool_threads_test.cc: many threads on one pool.
#include <catch2/catch.hpp>

#include <atomic>
#include <random>
#include <thread>

#include "memory/tiny_device.h"
#include "support/rounds.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("pool: 8 threads allocate and free across streams, also each other's blocks", "[memory][pool][stress]") {
  TinyDevice d("stress", 0, 1 << 30);
  constexpr int kThreads = 8, kShared = 64;
  std::vector<Stream*> streams{d.stream()};
  for (int i = 0; i < 3; ++i) streams.push_back(*make_stream(&d.device, 0));
  std::atomic<uint64_t> shared[kShared] = {};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      for (int round = 0; round < rounds(3000); ++round) {
        uint64_t bytes = random() % 10 == 0 ? random() % 500000 + 1 : random() % 8000 + 1;
        auto got = pool_allocate(streams[random() % streams.size()], bytes);
        if (!got.ok()) {
          ++wrong;
          continue;
        }
        Located at = AddressMap::locate(*got);
        if (!at.slab || at.block_base != *got || at.block_bytes != bytes) ++wrong;
        uint64_t old = shared[random() % kShared].exchange(*got);   // freed by whoever comes by
        if (old && !pool_free(old).ok()) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (auto& slot : shared)
    if (slot) REQUIRE_OK(pool_free(slot));
  REQUIRE_OK(d.pool()->check());
  CHECK(d.stats().n_live == 0);
  CHECK(d.stats().allocated == 0);
  REQUIRE_OK(d.device.pool->trim());
  CHECK(d.stats().reserved == 0);               // ended threads left nothing behind
}

TEST_CASE("MEM-03 pool: two threads free each other's blocks of their own streams, 10^5 rounds", "[memory][pool][MEM-03]") {
  TinyDevice d("cross", 0, 256 << 20);
  Stream* streams[2] = {d.stream(), *make_stream(&d.device, 0)};
  std::atomic<uint64_t> mailbox[2] = {};
  std::atomic<int> wrong{0};
  auto work = [&](int me) {
    for (int round = 0; round < 100000; ++round) {
      auto got = pool_allocate(streams[me], 64 + uint64_t(round % 700));
      if (!got.ok()) {
        ++wrong;
        continue;
      }
      uint64_t old = mailbox[1 - me].exchange(*got);
      if (old && !pool_free(old).ok()) ++wrong;
      uint64_t mine = mailbox[me].exchange(0);
      if (mine && !pool_free(mine).ok()) ++wrong;
    }
  };
  std::thread a(work, 0), b(work, 1);
  a.join();
  b.join();
  for (auto& box : mailbox)
    if (box) REQUIRE_OK(pool_free(box));
  CHECK(wrong == 0);
  REQUIRE_OK(d.pool()->check());
  CHECK(d.stats().n_live == 0);
  CHECK(d.stats().reserved <= 16 << 20);        // blocks find their way back, whoever frees them
}

TEST_CASE("pool: another thread's cache is given back at its next free when memory is short", "[memory][pool]") {
  TinyDevice d("drop", 0, 64 << 20);
  std::atomic<int> step{0};
  uint64_t blocks[8];
  std::thread other([&] {
    for (uint64_t& x : blocks) x = d.alloc(20000);
    for (int i = 0; i < 7; ++i) (void)pool_free(blocks[i]);
    step = 1;
    while (step != 2) std::this_thread::yield();
    (void)pool_free(blocks[7]);
    step = 3;
    while (step != 4) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  REQUIRE_OK(d.device.pool->trim());            // asks; the other thread's blocks are still its own
  step = 2;
  while (step != 3) std::this_thread::yield();
  REQUIRE_OK(d.device.pool->trim());
  CHECK(d.stats().reserved == 0);
  step = 4;
  other.join();
}
