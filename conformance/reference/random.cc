// conformance/reference/random.cc: Philox 4x32-10 from its paper (Salmon et al., 2011), and the numbers made of its words.
//
// Element i takes word i % 4 of the block whose counter is offset + i / 4; the key is the seed.
#include <array>
#include <cmath>

#include "reference/values.h"

namespace flhal::conformance {
namespace {

using Words = std::array<uint32_t, 4>;

Words philox(uint64_t seed, uint64_t counter) {
  Words c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

}  // namespace

// `bits`: of a uniform number, 24 for float32, 11 for float16, 8 for bfloat16, 32 for float64.
Expected random_numbers(const std::string& op, int64_t n, uint64_t seed, uint64_t offset, double first, double second, int bits) {
  Expected e(n);
  for (int64_t i = 0; i < n; ++i) {
    Words w = philox(seed, offset + static_cast<uint64_t>(i) / 4);
    auto k = static_cast<size_t>(i % 4);
    double value = 0, size = 0;
    if (op == "uniform") {
      value = first + std::ldexp(static_cast<double>(w[k] >> (32 - bits)), -bits) * (second - first);
      size = std::fabs(first) + std::fabs(second);
    } else if (op == "bernoulli") {
      value = std::ldexp(static_cast<double>(w[k] >> 8), -24) < first;
    } else if (op == "randint") {
      value = first + static_cast<double>(w[k] % static_cast<uint32_t>(second - first));
    } else {                                 // Box and Muller: words 0 and 1 make elements 0 and 1, words 2 and 3 the others
      size_t pair = k / 2 * 2;
      double u = std::ldexp(static_cast<double>(w[pair] >> 8) + 1, -24), angle = 2 * M_PI * std::ldexp(static_cast<double>(w[pair + 1]), -32);
      double radius = std::sqrt(-2 * std::log(u));
      value = first + second * radius * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
      size = std::fabs(first) + std::fabs(second) * radius;
    }
    e.set(static_cast<size_t>(i), value, size);
  }
  return e;
}

}  // namespace flhal::conformance
