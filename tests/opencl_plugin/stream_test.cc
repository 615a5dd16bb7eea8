// tests/opencl_plugin/stream_test.cc: order, events, times, signals of the host, waits between two devices.
#include <chrono>
#include <thread>

#include "world.h"

using namespace flhal;
using namespace flhal::test;
using Catch::Contains;

namespace {

const char kSlow[] = R"(
__kernel void slow(__global float* x, int rounds) {
  float v = x[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 1.0f;
  x[get_global_id(0)] = v;
}
__kernel void add(__global int* x, int by) { x[get_global_id(0)] += by; }
)";

}  // namespace

TEST_CASE("stream: work of one stream keeps its order, launches, copies and fills mixed", "[opencl][stream]") {
  for (uint32_t which : {0u, kBasic}) {
    Device* c = chip(which);
    flhal_stream* s = new_stream(c);
    flhal_function* add = function(build(c, kSlow), "add");
    flhal_addr a = allocate(s, 4 * 256), b = allocate(s, 4 * 256);
    const int zero = 0;
    int one = 1;
    for (int round = 0; round < 20; ++round) {
      REQUIRE_FINE(flhal_fill(s, a, 4 * 256, &zero, 4));
      for (int i = 0; i < 40; ++i) {
        REQUIRE_FINE(launch(s, add, 4, 64, {memory(a), value(one)}));
        REQUIRE_FINE(flhal_copy(s, b, a, 4 * 256, 0));
        REQUIRE_FINE(flhal_copy(s, a, b, 4 * 256, 0));
      }
      auto bytes = download(s, b, 4 * 256);
      auto* values = reinterpret_cast<const int*>(bytes.data());
      for (int i = 0; i < 256; ++i) REQUIRE(values[i] == 40);
    }
    flhal_free(a), flhal_free(b);
  }
}

TEST_CASE("stream: another stream waits for an event on the chip, not on the host", "[opencl][event]") {
  Device* c = chip();
  flhal_stream *s = new_stream(c), *other = new_stream(c);
  flhal_module* m = build(c, kSlow);
  flhal_function *slow = function(m, "slow"), *add = function(m, "add");
  const int n = 1024, rounds = 20000, one = 1;
  flhal_addr x = allocate(s, 4 * n), y = allocate(s, 4 * n);
  flhal_event* e = nullptr;
  REQUIRE_FINE(flhal_event_create(0, &e));
  for (int round = 0; round < 10; ++round) {
    std::vector<float> zero(n, 0);
    const int nothing = 0;
    upload(s, x, zero.data(), 4 * n);
    REQUIRE_FINE(flhal_fill(s, y, 4 * n, &nothing, 4));
    REQUIRE_FINE(launch(s, slow, n / 64, 64, {memory(x), value(rounds)}));
    REQUIRE_FINE(launch(s, add, n / 64, 64, {memory(y), value(one)}));
    REQUIRE_FINE(flhal_event_record(e, s));
    REQUIRE_FINE(flhal_event_wait(e, other));
    REQUIRE_FINE(launch(other, add, n / 64, 64, {memory(y), value(one)}));
    auto bytes = download(other, y, 4 * n);
    for (int i = 0; i < n; ++i) REQUIRE(reinterpret_cast<const int*>(bytes.data())[i] == 2);
    CHECK(flhal_event_query(e) == FLHAL_OK);
  }
  REQUIRE_FINE(flhal_event_release(e));
  flhal_free(x), flhal_free(y);
}

TEST_CASE("event: times are between their records", "[opencl][event]") {
  Device* c = chip();
  flhal_stream* s = new_stream(c);
  flhal_function* slow = function(build(c, kSlow), "slow");
  flhal_addr x = allocate(s, 4 * 64);
  flhal_event *from = nullptr, *to = nullptr;
  REQUIRE_FINE(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &from));
  REQUIRE_FINE(flhal_event_create(FLHAL_EVENT_WITH_TIMING, &to));
  const int rounds = 2000000;
  REQUIRE_FINE(launch(s, slow, 1, 64, {memory(x), value(rounds)}));   // compiled now
  REQUIRE_FINE(flhal_stream_synchronize(s));
  auto started = std::chrono::steady_clock::now();
  REQUIRE_FINE(flhal_event_record(from, s));
  REQUIRE_FINE(launch(s, slow, 1, 64, {memory(x), value(rounds)}));
  REQUIRE_FINE(flhal_event_record(to, s));
  REQUIRE_FINE(flhal_event_synchronize(to));
  auto wall = uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - started).count());
  uint64_t ns = 0;
  REQUIRE_FINE(flhal_event_elapsed_ns(from, to, &ns));
  CHECK(ns > 0);
  CHECK(ns <= wall);
  REQUIRE_FINE(flhal_event_release(from));
  REQUIRE_FINE(flhal_event_release(to));
  flhal_free(x);

  Slots t(c);                                         // without a stream: at once
  flhal_p_event *a = t.event(FLHAL_EVENT_TIMING), *plain = t.event();
  CHECK(t.table.event_elapsed_ns(a, a, &ns) == FLHAL_E_INVALID);
  CHECK_THAT(left_text(FLHAL_E_INVALID), Contains("never recorded"));
  REQUIRE(t.table.event_record(a, nullptr) == FLHAL_OK);
  CHECK(t.table.event_query(a) == FLHAL_OK);
  CHECK(t.table.event_elapsed_ns(a, a, &ns) == FLHAL_OK);
  CHECK(t.table.event_elapsed_ns(a, plain, &ns) == FLHAL_E_INVALID);
  t.table.event_destroy(a);
  t.table.event_destroy(plain);
}

TEST_CASE("event: a stream waits until the host signals, and learns of its failure", "[opencl][event][signal]") {
  for (flhal_status outcome : {FLHAL_OK, FLHAL_E_OP_FAILED}) {
    Slots t(chip());
    flhal_p_stream* s = t.stream();
    flhal_p_slab_v1 a = t.slab(65536);
    std::vector<uint8_t> before(65536, 1), after(65536, 2);
    REQUIRE(t.copy(nullptr, on(a), host(before.data()), 65536) == FLHAL_OK);
    flhal_p_event* gate = t.event(FLHAL_EVENT_HOST_SIGNALED);
    CHECK(t.table.event_query(gate) == FLHAL_NOT_READY);
    REQUIRE(t.table.event_wait(gate, s) == FLHAL_OK);
    REQUIRE(t.copy(s, on(a), host(after.data()), 65536) == FLHAL_OK);
    flhal_p_event* behind = t.event();
    REQUIRE(t.table.event_record(behind, s) == FLHAL_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(t.table.stream_query(s) == FLHAL_NOT_READY);
    CHECK(t.table.event_query(behind) == FLHAL_NOT_READY);
    CHECK((t.read(a) == before));                       // the queue stands
    std::thread signaller([&] { CHECK(t.table.event_signal(gate, outcome) == FLHAL_OK); });
    flhal_status end = t.table.stream_synchronize(s);
    CHECK(end == outcome);
    if (outcome != FLHAL_OK) CHECK_THAT(left_text(end), Contains("signalled as failed"));
    signaller.join();
    CHECK((t.read(a) == after));                        // it went on, in either case
    CHECK(t.table.event_query(behind) == outcome);      // what lies behind a failed signal is not to be trusted
    CHECK(t.table.event_synchronize(behind) == outcome);
    if (outcome != FLHAL_OK) CHECK_THAT(left_text(outcome), Contains("signalled as failed"));
    CHECK(t.table.event_query(gate) == outcome);
    CHECK(t.table.stream_query(s) == FLHAL_OK);       // told once
    flhal_p_stream* other = t.stream();               // ... and everybody who waits for the event learns of it
    REQUIRE(t.table.event_wait(behind, other) == FLHAL_OK);
    CHECK(t.table.stream_synchronize(other) == outcome);
    t.table.stream_destroy(other);
    REQUIRE(t.table.event_record(behind, s) == FLHAL_OK);
    CHECK(t.table.event_synchronize(behind) == FLHAL_OK);   // recorded anew, behind the failure that was told
    CHECK(t.table.event_signal(gate, FLHAL_OK) == FLHAL_E_INVALID);
    CHECK_THAT(left_text(FLHAL_E_INVALID), Contains("signalled before"));
    CHECK(t.table.event_record(gate, s) == FLHAL_E_INVALID);
    CHECK(t.table.event_signal(behind, FLHAL_OK) == FLHAL_E_INVALID);
    t.table.event_destroy(behind);
    t.table.event_destroy(gate);
    t.table.stream_destroy(s);
    t.table.memory_free(t.handle(), a.memory);
  }
}

TEST_CASE("event: one that is destroyed unsignalled lets its waiters go, as failed", "[opencl][event][signal]") {
  Slots t(chip());
  flhal_p_stream* s = t.stream();
  flhal_p_event* gate = t.event(FLHAL_EVENT_HOST_SIGNALED);
  REQUIRE(t.table.event_wait(gate, s) == FLHAL_OK);
  t.table.event_destroy(gate);
  CHECK(t.table.stream_synchronize(s) == FLHAL_E_OP_FAILED);
  t.table.stream_destroy(s);
}

TEST_CASE("event: a stream of another device waits without the host, for commands and for signals", "[opencl][event]") {
  for (uint32_t from : {0u, 1u}) {
    Slots a(chip(from)), b(chip(1 - from));
    flhal_p_stream *sa = a.stream(), *sb = b.stream();
    flhal_p_event *gate = a.event(FLHAL_EVENT_HOST_SIGNALED), *reached = a.event(), *done = b.event();
    flhal_p_slab_v1 slab = b.slab(65536);
    std::vector<uint8_t> before(65536, 1), after(65536, 2);
    REQUIRE(b.copy(nullptr, on(slab), host(before.data()), 65536) == FLHAL_OK);
    REQUIRE(a.table.event_wait(gate, sa) == FLHAL_OK);
    REQUIRE(a.table.event_record(reached, sa) == FLHAL_OK);
    REQUIRE(b.table.event_wait(reached, sb) == FLHAL_OK);
    REQUIRE(b.copy(sb, on(slab), host(after.data()), 65536) == FLHAL_OK);
    REQUIRE(b.table.event_record(done, sb) == FLHAL_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(b.table.event_query(done) == FLHAL_NOT_READY);
    REQUIRE(a.table.event_signal(gate, FLHAL_OK) == FLHAL_OK);
    REQUIRE(b.table.event_synchronize(done) == FLHAL_OK);
    CHECK((b.read(slab) == after));
    CHECK(b.table.stream_synchronize(sb) == FLHAL_OK);
    flhal_p_event* failing = a.event(FLHAL_EVENT_HOST_SIGNALED);
    REQUIRE(b.table.event_wait(failing, sb) == FLHAL_OK);
    REQUIRE(a.table.event_signal(failing, FLHAL_E_OP_FAILED) == FLHAL_OK);
    CHECK(b.table.stream_synchronize(sb) == FLHAL_E_OP_FAILED);
    for (flhal_p_event* e : {gate, reached, failing}) a.table.event_destroy(e);
    b.table.event_destroy(done);
    a.table.stream_destroy(sa);
    b.table.stream_destroy(sb);
    b.table.memory_free(b.handle(), slab.memory);
  }
}

TEST_CASE("stream: a query of an empty stream, of events never recorded, and waits without a stream", "[opencl][stream]") {
  Slots t(chip());
  flhal_p_stream* s = t.stream();
  flhal_p_event* e = t.event();
  CHECK(t.table.stream_query(s) == FLHAL_OK);
  CHECK(t.table.stream_synchronize(s) == FLHAL_OK);
  CHECK(t.table.event_query(e) == FLHAL_OK);
  CHECK(t.table.event_synchronize(e) == FLHAL_OK);
  CHECK(t.table.event_wait(e, s) == FLHAL_OK);
  CHECK(t.table.event_wait(e, nullptr) == FLHAL_OK);
  REQUIRE(t.table.event_record(e, s) == FLHAL_OK);
  CHECK(t.table.event_wait(e, nullptr) == FLHAL_OK);
  t.table.event_destroy(e);
  t.table.stream_destroy(s);
}
