// tests/mock/memory_test.cc: what a host may and may not see of the mock's memory.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "mock/direct_mock.h"

using namespace flhal::test;

TEST_CASE("mock: there are two chips of 16 and 24 GB", "[mock]") {
  flhal_plugin_info_v1 info = mock_info();
  flhal_init_v1 start{sizeof start, FLHAL_ST_INIT, nullptr, 0, 0};
  flhal_p_plugin* plugin = nullptr;
  unsetenv("FLHAL_MOCK");
  REQUIRE(info.table->init(&test_host(), &start, &plugin) == FLHAL_OK);
  uint32_t count = 0;
  REQUIRE(info.table->device_count(plugin, &count) == FLHAL_OK);
  REQUIRE(count == 2);
  flhal_p_device_info_v1 d{};
  d.struct_size = sizeof d;
  REQUIRE(info.table->device_info(plugin, 0, &d) == FLHAL_OK);
  CHECK(std::string(d.chip) == "chip_a");
  CHECK(std::string(d.compute_capability) == "7.5");
  CHECK(d.memory_bytes == 16ull << 30);
  REQUIRE(info.table->device_info(plugin, 1, &d) == FLHAL_OK);
  CHECK(std::string(d.chip) == "chip_b");
  CHECK(std::string(d.compute_capability) == "8.0");
  CHECK(d.memory_bytes == 24ull << 30);
  CHECK(info.table->device_info(plugin, 2, &d) == FLHAL_E_INVALID);
  info.table->shutdown(plugin);
}

TEST_CASE("mock: the host cannot read or write the address users see", "[mock]") {
  // Method: write(2) from an unreadable address answers EFAULT, where a plain access would end the test program.
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(1 << 20);
  CHECK(slab.host == nullptr);
  REQUIRE(slab.address % 65536 == 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(write(ends[1], reinterpret_cast<void*>(slab.address), 1) == -1);
  CHECK(errno == EFAULT);
  char byte = 1;
  REQUIRE(write(ends[1], &byte, 1) == 1);
  CHECK(read(ends[0], reinterpret_cast<void*>(slab.address + 4096), 1) == -1);
  CHECK(errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  // The mock's own alias works.
  auto* inside = static_cast<char*>(mock_control().inside(slab.address + 100));
  REQUIRE(inside != nullptr);
  *inside = 7;
  char got = 0;
  flhal_p_copy_v1 c = copy_of(host(&got), on(slab, 100), 1);
  CHECK(mock.table().copy(mock.chip(0), nullptr, &c) == FLHAL_OK);
  CHECK(got == 7);
  mock.table().memory_free(mock.chip(0), slab.memory);
  CHECK(mock_control().inside(slab.address) == nullptr);
}

TEST_CASE("mock: sixteen gigabytes are promised and only touched pages cost", "[mock]") {
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(16ull << 30);
  uint64_t free_bytes, total;
  REQUIRE(mock.table().memory_budget(mock.chip(0), &free_bytes, &total) == FLHAL_OK);
  CHECK(free_bytes == 0);
  uint32_t pattern = 0xdeadbeef, got = 0;
  flhal_p_place far = on(slab, (16ull << 30) - 4);
  REQUIRE(mock.table().fill(mock.chip(0), nullptr, &far, 4, &pattern, 4) == FLHAL_OK);
  flhal_p_copy_v1 c = copy_of(host(&got), far, 4);
  REQUIRE(mock.table().copy(mock.chip(0), nullptr, &c) == FLHAL_OK);
  CHECK(got == pattern);
  flhal_p_slab_v1 more{};
  more.struct_size = sizeof more;
  more.bytes = 1;
  CHECK(mock.table().memory_alloc(mock.chip(0), &more) == FLHAL_EXHAUSTED);
  mock.table().memory_free(mock.chip(0), slab.memory);
  CHECK(mock_counts(0).live_slabs == 0);
}

TEST_CASE("mock: the script sets the size of the memory, and how addresses look", "[mock]") {
  SECTION("1MiB") {
    DirectMock mock("memory=1MiB");
    flhal_p_slab_v1 s{};
    s.struct_size = sizeof s;
    s.bytes = (1 << 20) + 1;
    CHECK(mock.table().memory_alloc(mock.chip(0), &s) == FLHAL_EXHAUSTED);
  }
  SECTION("foreign addresses are the same numbers on both chips") {
    DirectMock mock("addresses=foreign");
    flhal_p_slab_v1 a = mock.slab(4096, 0), b = mock.slab(4096, 1);
    CHECK(a.address == b.address);
    mock.table().memory_free(mock.chip(0), a.memory);
    mock.table().memory_free(mock.chip(1), b.memory);
  }
  SECTION("none") {
    DirectMock mock("addresses=none");
    flhal_p_slab_v1 a = mock.slab(4096);
    CHECK(a.address == 0);
    mock.table().memory_free(mock.chip(0), a.memory);
  }
}

TEST_CASE("mock: of two views of the same range host_end ends the one it was given", "[mock]") {
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(4096);
  void *first = nullptr, *second = nullptr;
  flhal_p_place place = on(slab, 0);
  REQUIRE(mock.table().host_begin(mock.chip(0), &place, 16, 3, &first) == FLHAL_OK);
  REQUIRE(mock.table().host_begin(mock.chip(0), &place, 16, 3, &second) == FLHAL_OK);
  strcpy(static_cast<char*>(first), "first");
  strcpy(static_cast<char*>(second), "second");
  REQUIRE(mock.table().host_end(mock.chip(0), &place, 16, 3, second) == FLHAL_OK);
  CHECK(std::string(static_cast<char*>(mock_control().inside(slab.address))) == "second");
  CHECK(std::string(static_cast<char*>(first)) == "first");
  REQUIRE(mock.table().host_end(mock.chip(0), &place, 16, 3, first) == FLHAL_OK);
  CHECK(std::string(static_cast<char*>(mock_control().inside(slab.address))) == "first");
  mock.table().memory_free(mock.chip(0), slab.memory);
}

TEST_CASE("mock: a host view is a copy that host_end writes back", "[mock]") {
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(4096);
  void* view = nullptr;
  flhal_p_place place = on(slab, 64);
  REQUIRE(mock.table().host_begin(mock.chip(0), &place, 16, 3, &view) == FLHAL_OK);
  strcpy(static_cast<char*>(view), "hello");
  CHECK(static_cast<char*>(mock_control().inside(slab.address + 64))[0] == 0);
  CHECK(mock_counts(0).live_host_views == 1);
  REQUIRE(mock.table().host_end(mock.chip(0), &place, 16, 3, view) == FLHAL_OK);
  CHECK(std::string(static_cast<char*>(mock_control().inside(slab.address + 64))) == "hello");
  uint64_t before = mock_counts(0).misuse;
  CHECK(mock.table().host_end(mock.chip(0), &place, 16, 3, view) == FLHAL_E_INVALID);
  CHECK(mock_counts(0).misuse == before + 1);
  mock.table().memory_free(mock.chip(0), slab.memory);
}
