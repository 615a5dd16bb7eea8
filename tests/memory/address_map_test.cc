// tests/memory/address_map_test.cc: every address is unique in the process, and bounds are exact.
#include <catch2/catch.hpp>
#include <sys/mman.h>

#include "memory/tiny_device.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("address map: two devices that name the same address get ranges of their own", "[memory][address_map]") {
  constexpr uint64_t kClaimed = 0x200000000000ull;
  TinyDevice a("same_a", FLHAL_CAP_ADDRESSES | FLHAL_CAP_ADDRESSES_OURS), b("same_b", FLHAL_CAP_ADDRESSES | FLHAL_CAP_ADDRESSES_OURS);
  a.chip.fixed_address = b.chip.fixed_address = kClaimed;
  uint64_t x = a.alloc(1 << 20), y = b.alloc(1 << 20);
  REQUIRE(x);
  REQUIRE(y);
  REQUIRE(x != y);
  Located at_x = AddressMap::locate(x), at_y = AddressMap::locate(y);
  CHECK(at_x.slab->device == &a.device);
  CHECK(at_y.slab->device == &b.device);
  CHECK(at_x.slab->base == kClaimed);
  CHECK(at_y.slab->reserved_range);
  CHECK(at_y.slab->device_address == kClaimed);
  // A second slab of the same device collides as well.
  uint64_t z = a.alloc(8 << 20);
  REQUIRE(z);
  CHECK(AddressMap::locate(z).slab->reserved_range);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(pool_free(z));
}

TEST_CASE("address map: crooked and foreign addresses get a reserved range, host pointers are used as they are", "[memory][address_map]") {
  TinyDevice foreign("foreign", FLHAL_CAP_ADDRESSES);
  foreign.chip.fixed_address = 0x1000;
  uint64_t x = foreign.alloc(100);
  CHECK(AddressMap::locate(x).slab->reserved_range);
  TinyDevice crooked("crooked", FLHAL_CAP_HOST_VISIBLE);
  crooked.chip.host_visible = true;
  crooked.chip.shift = 256;
  uint64_t y = crooked.alloc(100);
  CHECK(AddressMap::locate(y).slab->reserved_range);
  TinyDevice visible("visible", FLHAL_CAP_HOST_VISIBLE);
  visible.chip.host_visible = true;
  uint64_t z = visible.alloc(100);
  CHECK_FALSE(AddressMap::locate(z).slab->reserved_range);
  CHECK(AddressMap::locate(z).slab->base == reinterpret_cast<uint64_t>(AddressMap::locate(z).slab->host));
  TinyDevice high("high", FLHAL_CAP_ADDRESSES | FLHAL_CAP_ADDRESSES_OURS);
  high.chip.fixed_address = 0xffff800000000000ull;
  uint64_t w = high.alloc(100);
  REQUIRE(w);
  CHECK(AddressMap::locate(w).slab->reserved_range);
  for (uint64_t address : {x, y, z, w}) REQUIRE_OK(pool_free(address));
}

TEST_CASE("address map: bounds are those of the allocation, from any byte in it", "[memory][address_map]") {
  TinyDevice d("bounds");
  for (uint64_t bytes : {1ull, 255ull, 256ull, 257ull, 1025ull, 5000ull, 32768ull, 32769ull, 100000ull, 262144ull, 262145ull, 3000000ull}) {
    CAPTURE(bytes);
    uint64_t x = d.alloc(bytes);
    REQUIRE(x);
    CHECK(x % 256 == 0);
    for (uint64_t offset : {uint64_t(0), bytes / 2, bytes - 1}) {
      Located at = AddressMap::locate(x + offset);
      REQUIRE(at.slab);
      CHECK(at.block_base == x);
      CHECK(at.block_bytes == bytes);
      CHECK(at.slab->base + at.offset == x + offset);
    }
    Located at;
    CHECK(AddressMap::locate_range(x, bytes, "flhal_copy", "dst", &at).ok());
    CHECK(AddressMap::locate_range(x, bytes + 1, "flhal_copy", "dst", &at).code() == FLHAL_E_INVALID);
    CHECK_FALSE(AddressMap::locate_range(x + bytes, 1, "flhal_copy", "dst", &at).ok());
    CHECK_FALSE(AddressMap::locate_range(x, UINT64_MAX, "flhal_copy", "dst", &at).ok());
    REQUIRE_OK(pool_free(x));
    CHECK_FALSE(AddressMap::locate_range(x, 1, "flhal_copy", "dst", &at).ok());
    CHECK(last_error_text().find("is not") != std::string::npos);
  }
}

TEST_CASE("address map: a range that leaves its allocation is told with values", "[memory][address_map]") {
  TinyDevice d("told");
  uint64_t x = d.alloc(6144);
  Located at;
  REQUIRE(AddressMap::locate_range(x + 4096, 4096, "flhal_copy", "dst", &at).code() == FLHAL_E_INVALID);
  CHECK(last_error_text() ==
        "flhal_copy: dst range [4096, 8192) leaves the allocation of 6144 bytes; at most 2048 bytes are left there");
  int on_stack = 0;
  CHECK(AddressMap::find(reinterpret_cast<uint64_t>(&on_stack)) == nullptr);
  CHECK(AddressMap::find(0) == nullptr);
  CHECK(AddressMap::find(UINT64_MAX) == nullptr);
  CHECK(AddressMap::find(x) != nullptr);
  for (int bit = 48; bit < 64; ++bit) CHECK(AddressMap::find(x | 1ull << bit) == nullptr);   // the table is 48 bits wide
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("address map: what was trimmed is found no more, and its addresses serve again", "[memory][address_map]") {
  TinyDevice d("trimmed");
  uint64_t x = d.alloc(4 << 20);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(d.device.pool->trim());
  CHECK(AddressMap::find(x) == nullptr);
  CHECK(d.chip.used == 0);
  uint64_t y = d.alloc(4 << 20);
  CHECK(AddressMap::find(y) != nullptr);
  REQUIRE_OK(pool_free(y));
}
