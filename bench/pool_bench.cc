// bench/pool_bench.cc: what one allocation and its free cost, and one address lookup.
//
//   pool_bench                      nanoseconds of each case, the median of 9 rounds
//   pool_bench count CASE N         runs the case N times and nothing else, for callgrind: run it with two N and divide the
//                                   difference of instructions by the difference of N (scripts do; so can you)
// Cases: same_stream (flhal_alloc + flhal_free of 1000 bytes), burst (16 blocks, then 16 frees), big (1 MiB),
//        find, locate, locate_range, empty (the loop alone).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory/tiny_device.h"

using namespace flhal;

namespace {

struct World {
  test::TinyDevice device{"bench", 0, 1ull << 30};
  flhal_stream* stream = handle_of(device.stream());
  uint64_t block = device.alloc(1000);
};

inline void keep(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

[[gnu::noinline]] void run(World& w, const char* name, long n) {
  flhal_addr x = 0, many[16];
  if (!strcmp(name, "same_stream")) {
    for (long i = 0; i < n; ++i) flhal_alloc(w.stream, 1000, &x), flhal_free(x);
  } else if (!strcmp(name, "burst")) {
    for (long i = 0; i < n; ++i) {
      for (flhal_addr& a : many) flhal_alloc(w.stream, 1000, &a);
      for (flhal_addr a : many) flhal_free(a);
    }
  } else if (!strcmp(name, "big")) {
    for (long i = 0; i < n; ++i) flhal_alloc(w.stream, 1 << 20, &x), flhal_free(x);
  } else if (!strcmp(name, "find")) {
    for (long i = 0; i < n; ++i) keep(reinterpret_cast<uint64_t>(AddressMap::find(w.block + uint64_t(i) % 1000)));
  } else if (!strcmp(name, "locate")) {
    for (long i = 0; i < n; ++i) {
      Located at = AddressMap::locate(w.block + uint64_t(i) % 1000);
      keep(at.offset), keep(at.block_base), keep(at.block_bytes), keep(reinterpret_cast<uint64_t>(at.slab));
    }
  } else if (!strcmp(name, "locate_range")) {
    for (long i = 0; i < n; ++i) {
      Located at;
      keep(AddressMap::locate_range(w.block + uint64_t(i) % 1000, 1, "f", "x", &at).ok());
      keep(at.offset), keep(reinterpret_cast<uint64_t>(at.slab));
    }
  } else if (!strcmp(name, "empty")) {
    for (long i = 0; i < n; ++i) keep(w.block + uint64_t(i) % 1000);
  } else {
    std::fprintf(stderr, "pool_bench: unknown case %s\n", name);
    std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  if (argc == 4 && !strcmp(argv[1], "count")) {
    run(world, argv[2], std::atol(argv[3]));
    return 0;
  }
  for (const char* name : {"same_stream", "burst", "big", "find", "locate", "locate_range", "empty"}) {
    long n = !strcmp(name, "burst") || !strcmp(name, "big") ? 20000 : 300000;
    double rounds[9];
    for (double& ns : rounds) {
      auto start = std::chrono::steady_clock::now();
      run(world, name, n);
      ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / double(n);
    }
    std::sort(rounds, rounds + 9);
    std::printf("%-13s %8.1f ns\n", name, rounds[4]);
  }
}
