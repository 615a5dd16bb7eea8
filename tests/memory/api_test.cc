// tests/memory/api_test.cc: the exports of memory.h, copy.h and stream.h, as a C program calls them.
#include <flhal/copy.h>
#include <flhal/memory.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/chips.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("api: allocate, look up, copy, fill, view and free", "[api][memory]") {
  flhal_stream* stream = flhal_stream_default(handle_of(chip("ram")));
  REQUIRE(stream);
  CHECK(flhal_stream_device(stream) == handle_of(chip("ram")));
  CHECK(flhal_stream_id(stream) != 0);
  flhal_addr x = 0, nothing = 7;
  REQUIRE(flhal_alloc(stream, 1000, &x) == FLHAL_OK);
  REQUIRE(flhal_alloc(stream, 0, &nothing) == FLHAL_OK);
  CHECK(nothing == 0);
  CHECK(flhal_alloc(stream, 10, nullptr) == FLHAL_E_INVALID);
  CHECK(flhal_alloc(nullptr, 10, &nothing) == FLHAL_E_INVALID);
  flhal_memory_place place{};
  place.struct_size = sizeof place;
  REQUIRE(flhal_memory_lookup(x + 999, &place) == FLHAL_OK);
  CHECK(place.base == x);
  CHECK(place.bytes == 1000);
  CHECK(place.device == chip("ram")->index);
  CHECK(place.host == nullptr);
  CHECK(flhal_memory_lookup(x + 1000, &place) == FLHAL_E_NOT_FOUND);
  CHECK(flhal_memory_lookup(reinterpret_cast<flhal_addr>(&place), &place) == FLHAL_E_NOT_FOUND);
  uint16_t pattern = 0x1234, back[500];
  REQUIRE(flhal_fill(stream, x, 1000, &pattern, 2) == FLHAL_OK);
  REQUIRE(flhal_copy(stream, reinterpret_cast<flhal_addr>(back), x, 1000, 0) == FLHAL_OK);
  CHECK(back[499] == 0x1234);
  void* host;
  uint64_t ticket;
  REQUIRE(flhal_host_begin(stream, x + 2, 4, FLHAL_READ, &host, &ticket) == FLHAL_OK);
  CHECK(static_cast<uint16_t*>(host)[1] == 0x1234);
  REQUIRE(flhal_host_end(stream, ticket) == FLHAL_OK);
  flhal_memory_stats stats{};
  stats.struct_size = sizeof stats;
  REQUIRE(flhal_memory_get_stats(handle_of(chip("ram")), &stats) == FLHAL_OK);
  CHECK(stats.requested >= 1000);
  CHECK(stats.limit > 0);
  REQUIRE(flhal_memory_used_on(x, stream) == FLHAL_OK);
  REQUIRE(flhal_free(x) == FLHAL_OK);
  CHECK(flhal_free(x) == FLHAL_E_INVALID);
  REQUIRE(flhal_free(0) == FLHAL_OK);
  REQUIRE(flhal_memory_reset_peaks(handle_of(chip("ram"))) == FLHAL_OK);
  REQUIRE(flhal_memory_trim(handle_of(chip("ram"))) == FLHAL_OK);
  void* pinned;
  REQUIRE(flhal_host_alloc(nullptr, 100, &pinned) == FLHAL_OK);
  CHECK(flhal_host_is_pinned(static_cast<char*>(pinned) + 99) == FLHAL_OK);
  CHECK(flhal_host_is_pinned(&stats) == FLHAL_DECLINED);
  REQUIRE(flhal_host_used_on(pinned, stream) == FLHAL_OK);
  REQUIRE(flhal_host_free(pinned) == FLHAL_OK);
}

TEST_CASE("api: a released stream is refused, also by the allocator's fast path", "[api][stream]") {
  flhal_stream* stream;
  REQUIRE(flhal_stream_create(handle_of(chip("ram")), 0, &stream) == FLHAL_OK);
  flhal_addr x, y;
  REQUIRE(flhal_alloc(stream, 64, &x) == FLHAL_OK);
  REQUIRE(flhal_alloc(stream, 64, &y) == FLHAL_OK);
  REQUIRE(flhal_free(x) == FLHAL_OK);
  REQUIRE(flhal_stream_retain(stream) == FLHAL_OK);
  REQUIRE(flhal_stream_release(stream) == FLHAL_OK);
  REQUIRE(flhal_stream_release(stream) == FLHAL_OK);
  CHECK(flhal_stream_synchronize(stream) == FLHAL_E_INVALID);
  CHECK(flhal_alloc(stream, 64, &x) == FLHAL_E_INVALID);
  REQUIRE(flhal_free(y) == FLHAL_OK);            // memory outlives its stream
}

TEST_CASE("api: a forked child frees silently and is refused everything else", "[api][fork]") {
  Device* d = chip("chip_a");
  flhal_stream* stream = handle_of(d->default_stream);
  flhal_addr small[4], big;
  for (flhal_addr& a : small) REQUIRE(flhal_alloc(stream, 100, &a) == FLHAL_OK);
  REQUIRE(flhal_free(small[3]) == FLHAL_OK);     // the thread's cache has something
  REQUIRE(flhal_alloc(stream, 1 << 20, &big) == FLHAL_OK);
  void* pinned;
  REQUIRE(flhal_host_alloc(nullptr, 100, &pinned) == FLHAL_OK);
  flhal_event* event;
  REQUIRE(flhal_event_create(0, &event) == FLHAL_OK);
  REQUIRE(flhal_event_record(event, stream) == FLHAL_OK);
  pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    flhal_addr x;
    void* p;
    wrong += flhal_free(small[0]) != FLHAL_OK;
    wrong += flhal_free(small[0]) != FLHAL_OK;
    wrong += flhal_free(big) != FLHAL_OK;
    wrong += flhal_host_free(pinned) != FLHAL_OK;
    wrong += flhal_event_release(event) != FLHAL_OK;
    wrong += flhal_alloc(stream, 100, &x) != FLHAL_E_FORKED;
    wrong += flhal_host_alloc(nullptr, 100, &p) != FLHAL_E_FORKED;
    wrong += flhal_stream_synchronize(stream) != FLHAL_E_FORKED;
    wrong += flhal_fill(stream, big, 16, &x, 1) != FLHAL_E_FORKED;
    _exit(wrong);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  for (int i = 0; i < 3; ++i) CHECK(flhal_free(small[i]) == FLHAL_OK);   // nothing of that happened here
  CHECK(flhal_free(big) == FLHAL_OK);
  CHECK(flhal_host_free(pinned) == FLHAL_OK);
  CHECK(flhal_event_release(event) == FLHAL_OK);
}
