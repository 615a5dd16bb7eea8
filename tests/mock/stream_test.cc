// tests/mock/stream_test.cc: order within a stream, delay between streams, events, failures on demand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "mock/direct_mock.h"

using namespace flhal::test;

namespace {

// Appends numbers to a log in the order in which work ran; the kernel of a module of our own.
std::mutex g_log_mutex;
std::vector<int64_t> g_log;
void log_number(const void* const* argv, uint64_t, uint64_t) {
  std::lock_guard lock(g_log_mutex);
  g_log.push_back(*static_cast<const int64_t*>(argv[0]));
}
void set_int(const void* const* argv, uint64_t first, uint64_t count) {
  auto* out = static_cast<int64_t*>(const_cast<void*>(argv[0]));
  for (uint64_t i = first; i < first + count; ++i) out[i] = *static_cast<const int64_t*>(argv[1]) + static_cast<int64_t>(i);
}
const flhal_host_function kFunctions[] = {{"log_number", log_number}, {"set_int", set_int}};
const flhal_host_module kModule = {sizeof kModule, 2, kFunctions};

struct Kernels {
  explicit Kernels(const DirectMock& mock) : mock(mock) {
    flhal_p_source_v1 source{};
    source.struct_size = sizeof source;
    source.dialect = FLHAL_DIALECT_HOST;
    source.data = &kModule;
    source.bytes = sizeof kModule;
    REQUIRE(mock.table().module_load(mock.chip(0), &source, &module) == FLHAL_OK);
    REQUIRE(mock.table().function_get(module, "log_number", &log) == FLHAL_OK);
    REQUIRE(mock.table().function_get(module, "set_int", &set) == FLHAL_OK);
    g_log.clear();
  }
  ~Kernels() { mock.table().module_unload(module); }
  flhal_status launch_log(flhal_p_stream* stream, int64_t number) const {
    flhal_p_arg arg{FLHAL_ARG_VALUE, 8, &number, nullptr, 0, 0};
    return launch(log, stream, &arg, 1, 1);
  }
  flhal_status launch(flhal_p_function* f, flhal_p_stream* stream, const flhal_p_arg* args, uint32_t n, uint64_t groups) const {
    flhal_p_launch_v1 l{sizeof l, FLHAL_ST_LAUNCH, nullptr, f, {groups, 1, 1}, {1, 1, 1}, 0, args, n, sizeof(flhal_p_arg)};
    return mock.table().launch(mock.chip(0), stream, &l);
  }
  const DirectMock& mock;
  flhal_p_module* module = nullptr;
  flhal_p_function* log = nullptr, *set = nullptr;
};

}  // namespace

TEST_CASE("mock: held work does not run, and nothing overtakes on one stream", "[mock][stream]") {
  DirectMock mock("reorder=5,delay_ms=1");
  const uint64_t misuse_before = mock_counts(0).misuse;
  const auto& t = mock.table();
  flhal_p_stream* stream = mock.stream();
  {
    Kernels k(mock);
    {
      MockHold hold;
      for (int64_t i = 0; i < 20; ++i) REQUIRE(k.launch_log(stream, i) == FLHAL_OK);
      CHECK(t.stream_query(stream) == FLHAL_NOT_READY);
      CHECK(mock_counts(0).queued == 20);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK(g_log.empty());
      hold.step(3);
      while (mock_counts(0).queued > 17) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      CHECK(mock_counts(0).queued == 17);
    }
    REQUIRE(t.stream_synchronize(stream) == FLHAL_OK);
    REQUIRE(g_log.size() == 20);
    for (int64_t i = 0; i < 20; ++i) CHECK(g_log[static_cast<size_t>(i)] == i);
  }
  t.stream_destroy(stream);
  CHECK(mock_counts(0).misuse == misuse_before);
}

TEST_CASE("mock: reorder lets one stream overtake another", "[mock][stream]") {
  DirectMock mock("reorder=7,delay_ms=4");
  flhal_p_stream* a = mock.stream(), *b = mock.stream();
  {
    Kernels k(mock);
    for (int64_t i = 0; i < 20; ++i) {
      REQUIRE(k.launch_log(a, i * 2) == FLHAL_OK);
      REQUIRE(k.launch_log(b, i * 2 + 1) == FLHAL_OK);
    }
    REQUIRE(mock.table().stream_synchronize(a) == FLHAL_OK);
    REQUIRE(mock.table().stream_synchronize(b) == FLHAL_OK);
    std::vector<int64_t> even, odd;
    for (int64_t n : g_log) (n % 2 ? odd : even).push_back(n);
    CHECK(std::is_sorted(even.begin(), even.end()));
    CHECK(std::is_sorted(odd.begin(), odd.end()));
    CHECK(!std::is_sorted(g_log.begin(), g_log.end()));
  }
  mock.table().stream_destroy(a);
  mock.table().stream_destroy(b);
}

TEST_CASE("mock: a launch keeps value bytes, and runs ranges in another order", "[mock][launch]") {
  DirectMock mock;
  flhal_p_stream* stream = mock.stream();
  flhal_p_slab_v1 slab = mock.slab(4096);
  {
    Kernels k(mock);
    {
      MockHold hold;
      int64_t start = 100;
      flhal_p_arg args[2] = {{FLHAL_ARG_MEMORY, 0, nullptr, slab.memory, 8, slab.address + 8}, {FLHAL_ARG_VALUE, 8, &start, nullptr, 0, 0}};
      REQUIRE(k.launch(k.set, stream, args, 2, 5) == FLHAL_OK);
      start = -1;   // the work has not run yet
      args[0].memory = nullptr;
    }
    REQUIRE(mock.table().stream_synchronize(stream) == FLHAL_OK);
    auto* got = static_cast<int64_t*>(mock_control().inside(slab.address));
    CHECK(got[0] == 0);
    for (int i = 0; i < 5; ++i) CHECK(got[1 + i] == 100 + i);
    CHECK(got[6] == 0);
  }
  mock.table().memory_free(mock.chip(0), slab.memory);
  mock.table().stream_destroy(stream);
}

TEST_CASE("mock: a stream waits for an event of another one", "[mock][event]") {
  DirectMock mock;
  const auto& t = mock.table();
  flhal_p_stream* a = mock.stream(), *b = mock.stream();
  flhal_p_event* event = nullptr;
  REQUIRE(t.event_create(mock.chip(0), FLHAL_EVENT_TIMING, &event) == FLHAL_OK);
  CHECK(t.event_query(event) == FLHAL_OK);   // never recorded = already done
  {
    Kernels k(mock);
    {
      MockHold hold;
      REQUIRE(k.launch_log(a, 1) == FLHAL_OK);
      REQUIRE(t.event_record(event, a) == FLHAL_OK);
      REQUIRE(t.event_wait(event, b) == FLHAL_OK);
      REQUIRE(k.launch_log(b, 2) == FLHAL_OK);
      CHECK(t.event_query(event) == FLHAL_NOT_READY);
    }
    REQUIRE(t.event_synchronize(event) == FLHAL_OK);
    REQUIRE(t.stream_synchronize(b) == FLHAL_OK);
    CHECK(g_log == std::vector<int64_t>{1, 2});
  }
  flhal_p_event* later = nullptr;
  REQUIRE(t.event_create(mock.chip(0), FLHAL_EVENT_TIMING, &later) == FLHAL_OK);
  uint64_t ns = 0;
  CHECK(t.event_elapsed_ns(event, later, &ns) == FLHAL_E_INVALID);
  REQUIRE(t.event_record(later, a) == FLHAL_OK);
  REQUIRE(t.event_synchronize(later) == FLHAL_OK);
  CHECK(t.event_elapsed_ns(event, later, &ns) == FLHAL_OK);
  CHECK(ns > 0);
  t.event_destroy(event);
  t.event_destroy(later);
  t.stream_destroy(a);
  t.stream_destroy(b);
}

TEST_CASE("mock: a host-signalled event holds a stream until it is signalled", "[mock][event]") {
  DirectMock mock;
  const auto& t = mock.table();
  flhal_p_stream* stream = mock.stream();
  flhal_p_event* event = nullptr;
  REQUIRE(t.event_create(mock.chip(0), FLHAL_EVENT_HOST_SIGNALED, &event) == FLHAL_OK);
  CHECK(t.event_query(event) == FLHAL_NOT_READY);
  {
    Kernels k(mock);
    REQUIRE(t.event_wait(event, stream) == FLHAL_OK);
    REQUIRE(k.launch_log(stream, 9) == FLHAL_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(t.stream_query(stream) == FLHAL_NOT_READY);
    REQUIRE(t.event_signal(event, FLHAL_OK) == FLHAL_OK);
    REQUIRE(t.stream_synchronize(stream) == FLHAL_OK);
    CHECK(g_log == std::vector<int64_t>{9});
  }
  t.event_destroy(event);
  t.stream_destroy(stream);
}

TEST_CASE("mock: the script fails the n-th call, or the n-th work, of a slot", "[mock][failure]") {
  DirectMock mock("fail_call=launch:2,fail_work=fill:3,fail_call=memory_alloc:2:exhausted");
  const auto& t = mock.table();
  flhal_p_stream* stream = mock.stream();
  flhal_p_slab_v1 slab = mock.slab(4096);
  flhal_p_slab_v1 second{};
  second.struct_size = sizeof second;
  second.bytes = 16;
  CHECK(t.memory_alloc(mock.chip(0), &second) == FLHAL_EXHAUSTED);
  {
    Kernels k(mock);
    CHECK(k.launch_log(stream, 1) == FLHAL_OK);
    CHECK(k.launch_log(stream, 2) == FLHAL_E_OP_FAILED);
    CHECK(mock.error() == "mock chip_a: the script made launch fail");
    CHECK(k.launch_log(stream, 3) == FLHAL_OK);
    REQUIRE(t.stream_synchronize(stream) == FLHAL_OK);
  }
  flhal_p_place place = on(slab);
  uint8_t one = 1;
  for (int i = 0; i < 4; ++i) CHECK(t.fill(mock.chip(0), stream, &place, 16, &one, 1) == FLHAL_OK);
  CHECK(t.stream_synchronize(stream) == FLHAL_E_OP_FAILED);
  CHECK(mock.error().find("work of fill") != std::string::npos);
  CHECK(t.stream_synchronize(stream) == FLHAL_OK);   // told once
  t.memory_free(mock.chip(0), slab.memory);
  t.stream_destroy(stream);
}

TEST_CASE("mock: a lost device stays lost until it is opened again", "[mock][failure]") {
  DirectMock mock("lose_after=3@a");
  const auto& t = mock.table();
  flhal_p_slab_v1 slab = mock.slab(4096), other = mock.slab(4096, 1);
  flhal_p_place place = on(slab), place_b = on(other);
  uint8_t one = 1;
  for (int i = 0; i < 3; ++i) CHECK(t.fill(mock.chip(0), nullptr, &place, 16, &one, 1) == FLHAL_OK);
  CHECK(t.fill(mock.chip(0), nullptr, &place, 16, &one, 1) == FLHAL_E_DEVICE_LOST);
  CHECK(t.fill(mock.chip(0), nullptr, &place, 16, &one, 1) == FLHAL_E_DEVICE_LOST);
  for (int i = 0; i < 5; ++i) CHECK(t.fill(mock.chip(1), nullptr, &place_b, 16, &one, 1) == FLHAL_OK);
  flhal_p_slab_v1 more{};
  more.struct_size = sizeof more;
  more.bytes = 1;
  CHECK(t.memory_alloc(mock.chip(0), &more) == FLHAL_E_DEVICE_LOST);
  t.memory_free(mock.chip(0), slab.memory);   // giving back always works
  t.memory_free(mock.chip(1), other.memory);
}

TEST_CASE("mock: a script that does not parse is a sentence with the valid keys", "[mock]") {
  DirectMock mock;
  CHECK(mock_control().script("delay_ms=abc") == FLHAL_E_INVALID);
  CHECK(mock.error() == "mock: the script's delay_ms=abc does not parse; it takes milliseconds, 0 to 60000");
  CHECK(mock_control().script("colour=red") == FLHAL_E_INVALID);
  CHECK(mock.error().find("valid keys are delay_ms, reorder, fail_call") != std::string::npos);
}
