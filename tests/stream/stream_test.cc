// tests/stream/stream_test.cc: streams, events and deferred release, on chips with late work and on chips without queues.
#include <thread>

#include "core/bridge.h"
#include "core/config.h"
#include "stream/chips.h"

using namespace flhal;
using namespace flhal::test;

static const uint8_t kOne = 1, kTwo = 2;

TEST_CASE("stream: without queues everything is done when a call returns", "[core][stream]") {
  Stream* s = chip("ram")->default_stream;
  uint64_t x = allocate(s, 64);
  REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
  CHECK(s->query().code() == FLHAL_OK);
  CHECK(s->reached(s->here().sequence));
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("stream: query tells of work in flight, synchronize waits for it", "[core][stream]") {
  Stream* s = chip("chip_a")->default_stream;
  uint64_t x = allocate(s, 64);
  Point before = s->here();
  {
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    CHECK(s->query().code() == FLHAL_NOT_READY);
    CHECK_FALSE(s->reached(s->here().sequence));
    CHECK(s->reached(before.sequence));
  }
  REQUIRE_OK(s->synchronize());
  CHECK(s->query().code() == FLHAL_OK);
  CHECK(s->reached(s->here().sequence));
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("stream: waiting for what has ended already records no event", "[core][stream]") {
  Stream* s = chip("chip_a")->default_stream;
  uint64_t x = allocate(s, 64);
  REQUIRE_OK(s->synchronize());
  for (bool whole : {false, true}) {
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    while (mock_counts(0).queued != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const uint64_t records = mock_counts(0).records;
    REQUIRE_OK(whole ? s->synchronize() : s->wait_for(s->here().sequence));
    CHECK(mock_counts(0).records == records);
  }
  {
    MockScript failing("fail_work=fill:1");                // also a failure of what has ended is told
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    while (mock_counts(0).queued != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(s->wait_for(s->here().sequence).code() == FLHAL_E_OP_FAILED);
  }
  s->clear_error();
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("stream: a point is reached without anybody waiting", "[core][stream]") {
  Stream* s = chip("chip_a")->default_stream;
  uint64_t x = allocate(s, 64);
  MockScript slow("delay_ms=5");
  REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
  Point point = s->here();
  for (int i = 0; i < 3; ++i) REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
  int asked = 0;
  while (!s->reached(point.sequence)) {
    ++asked;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(asked < 5000);
  }
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("stream: a released stream keeps its work, and its place is used again under a new id", "[core][stream]") {
  Device* d = chip("chip_a");
  Stream* s = *make_stream(d, 0);
  uint64_t id = s->id, x = allocate(s, 64);
  {
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
    REQUIRE_OK(release_stream(s));
    CHECK(check_stream(handle_of(s), "test").code() == FLHAL_E_INVALID);
  }
  REQUIRE_OK(synchronize_device(d));
  uint64_t live = mock_counts(0).live_streams;
  for (int i = 0; i < 100; ++i) {
    Stream* again = *make_stream(d, 0);
    CHECK(again->id > id);
    REQUIRE_OK(release_stream(again));
  }
  CHECK(mock_counts(0).live_streams == live);
  REQUIRE_OK(synchronize_device(d));
  CHECK(bytes_of(d->default_stream, x, 64) == std::vector<uint8_t>(64, 2));
  REQUIRE_OK(pool_free(x));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("stream: work that fails at once names op, call and stream, and poisons the stream until cleared", "[core][stream][failure]") {
  for (const char* name : {"ram", "chip_a"}) {
    CAPTURE(name);
    Device* d = chip(name);
    Stream* s = *make_stream(d, 0);
    auto failing = [&] { return s->submit("matmul", [](flhal_p_stream*) -> flhal_status { return FLHAL_E_OP_FAILED; }); };
    uint64_t number_of_call = s->here().sequence + 1;
    CHECK(failing().code() == FLHAL_E_OP_FAILED);
    std::string text = last_error_text();
    INFO(text);
    CHECK(text.find(fmt::format("matmul, call {} on stream {} of {}", number_of_call, s->id, name)) != std::string::npos);
    CHECK(s->submit("add", [](flhal_p_stream*) { return FLHAL_OK; }).code() == FLHAL_E_OP_FAILED);
    CHECK(last_error_text().find("add: not run") == 0);
    CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
    CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
    CHECK(last_error_text().find("matmul") != std::string::npos);
    CHECK(d->default_stream->usable());
    s->clear_error();
    CHECK(s->submit("add", [](flhal_p_stream*) { return FLHAL_OK; }).code() == FLHAL_OK);
    REQUIRE_OK(s->synchronize());
    // A refusal is no failure of the chip, and an expected answer is none at all.
    CHECK(s->submit("conv2d", [](flhal_p_stream*) -> flhal_status { return FLHAL_E_INVALID; }).code() == FLHAL_E_INVALID);
    CHECK(s->submit("conv2d", [](flhal_p_stream*) -> flhal_status { return FLHAL_DECLINED; }).code() == FLHAL_DECLINED);
    CHECK(s->usable());
    REQUIRE_OK(release_stream(s));
  }
}

TEST_CASE("stream: work that fails late arrives at the next wait, and only in its stream", "[core][stream][failure]") {
  Device* d = chip("chip_a");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64), y = allocate(t, 64);
  {
    MockScript script("fail_work=fill:1");
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
    std::string text = last_error_text();
    INFO(text);
    CHECK(text.find("fill") != std::string::npos);
    CHECK(text.find(fmt::format("stream {} of chip_a", s->id)) != std::string::npos);
  }
  REQUIRE_OK(fill_bytes(t, y, 64, &kOne, 1));
  REQUIRE_OK(t->synchronize());
  CHECK(fill_bytes(s, x, 64, &kOne, 1).code() == FLHAL_E_OP_FAILED);
  s->clear_error();
  REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
  CHECK(bytes_of(s, x, 64)[0] == 2);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("COPY-05 event: with a wait the consumer is right for every producer, on one chip and across chips", "[core][event][COPY-05]") {
  struct Pair { const char *producer, *consumer; bool on_chip; };
  for (Pair pair : {Pair{"chip_a", "chip_a", true}, Pair{"chip_a", "chip_b", true}, Pair{"chip_a", "ram", false}, Pair{"ram", "chip_a", false}}) {
    for (bool by_copy : {true, false}) {
      CAPTURE(pair.producer, pair.consumer, by_copy);
      Device *p = chip(pair.producer), *c = chip(pair.consumer);
      Stream* side = *make_stream(p, 0);
      Stream* use = c->default_stream;
      uint64_t x = allocate(side, 4096), from = allocate(side, 4096);
      REQUIRE_OK(fill_bytes(side, x, 4096, &kOne, 1));
      REQUIRE_OK(fill_bytes(side, from, 4096, &kTwo, 1));
      REQUIRE_OK(side->synchronize());
      Event event(0);
      uint64_t waits = bridge_host_waits();
      {
        MockScript slow("delay_ms=10");
        if (by_copy) REQUIRE_OK(copy_bytes(side, x, from, 4096, 0));
        else REQUIRE_OK(fill_bytes(side, x, 4096, &kTwo, 1));
        REQUIRE_OK(event.record(side));
        REQUIRE_OK(event.wait(use));
        if (pair.on_chip) CHECK(bridge_host_waits() == waits);
        uint64_t y = allocate(use, 4096);
        if (p == c) REQUIRE_OK(copy_bytes(use, y, x, 4096, 0));
        else REQUIRE_OK(copy_bytes(use, y, x, 4096, 0));
        CHECK(bytes_of(use, y, 4096) == std::vector<uint8_t>(4096, 2));
        REQUIRE_OK(pool_free(y));
      }
      if (std::string(pair.producer) == "chip_a" && std::string(pair.consumer) == "ram") CHECK(bridge_host_waits() > waits);
      REQUIRE_OK(pool_free(x));
      REQUIRE_OK(pool_free(from));
      REQUIRE_OK(release_stream(side));
    }
  }
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("event: a wait takes the point of its moment, later recordings do not move it", "[core][event]") {
  Device* d = chip("chip_a");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64), y = allocate(t, 64);
  Event event(0);
  CHECK(event.query().code() == FLHAL_OK);       // never recorded: already done
  REQUIRE_OK(event.wait(t));
  REQUIRE_OK(event.synchronize());
  REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
  REQUIRE_OK(event.record(s));
  REQUIRE_OK(event.wait(t));
  {
    REQUIRE_OK(event.synchronize());
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
    REQUIRE_OK(event.record(s));
    CHECK(event.query().code() == FLHAL_NOT_READY);
    hold.step(1);
  }
  REQUIRE_OK(fill_bytes(t, y, 64, &kOne, 1));
  REQUIRE_OK(t->synchronize());
  REQUIRE_OK(event.synchronize());
  CHECK(event.query().code() == FLHAL_OK);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("event: a failure of the point arrives in the stream that waited for it", "[core][event][failure]") {
  for (const char* waiter : {"chip_a", "chip_b", "ram"}) {
    CAPTURE(waiter);
    Device *d = chip("chip_a"), *w = chip(waiter);
    Stream *s = *make_stream(d, 0), *t = *make_stream(w, 0);
    uint64_t x = allocate(s, 64);
    Event event(0);
    {
      MockScript script("fail_work=fill:1,delay_ms=5");
      REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
      REQUIRE_OK(event.record(s));
      Status waited = event.wait(t);
      Status end = t->synchronize();
      CHECK((!waited.ok() || !end.ok()));
      CHECK(t->synchronize().code() == FLHAL_E_OP_FAILED);
      INFO(last_error_text());
      CHECK(last_error_text().find(fmt::format("stream {} of {}", t->id, waiter)) != std::string::npos);
    }
    t->clear_error();
    s->clear_error();
    REQUIRE_OK(s->synchronize());
    REQUIRE_OK(t->synchronize());
    REQUIRE_OK(pool_free(x));
    REQUIRE_OK(release_stream(s));
    REQUIRE_OK(release_stream(t));
  }
}

TEST_CASE("event: time between two points, and what is missing for it", "[core][event]") {
  for (const char* name : {"ram", "chip_a"}) {
    CAPTURE(name);
    Stream* s = chip(name)->default_stream;
    uint64_t x = allocate(s, 64), ns = 0;
    Event a(FLHAL_EVENT_WITH_TIMING), b(FLHAL_EVENT_WITH_TIMING), plain(0);
    CHECK(Event::elapsed_ns(&a, &b, &ns).code() == FLHAL_E_INVALID);
    CHECK(last_error_text().find("never recorded") != std::string::npos);
    REQUIRE_OK(a.record(s));
    if (s->asynchronous) {
      MockScript slow("delay_ms=10");
      REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
      REQUIRE_OK(b.record(s));
      REQUIRE_OK(b.synchronize());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      REQUIRE_OK(b.record(s));
    }
    REQUIRE_OK(Event::elapsed_ns(&a, &b, &ns));
    CHECK(ns >= 9000000);
    REQUIRE_OK(plain.record(s));
    CHECK(Event::elapsed_ns(&a, &plain, &ns).code() == FLHAL_E_INVALID);
    CHECK(last_error_text().find("second event was made without") != std::string::npos);
    REQUIRE_OK(pool_free(x));
  }
}

TEST_CASE("event: 10^4 recordings need a handful of plugin events", "[core][event][MEM-05]") {
  Device* d = chip("chip_a");
  Stream *s = d->default_stream, *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64);
  for (int i = 0; i < 10000; ++i) {
    Event event(0);
    if (i % 100 == 0) REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    REQUIRE_OK(event.record(s));
    if (i % 3 == 0) REQUIRE_OK(event.wait(t));
    if (i % 50 == 0) REQUIRE_OK(t->synchronize());
    if (i % 50 == 25) REQUIRE_OK(s->synchronize());
  }
  REQUIRE_OK(synchronize_device(d));
  retire_poll();
  CHECK(family_of(d)->n_plugin_events < 200);
  CHECK(retire_pending() == 0);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(t));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("retire: runs once, when the last point is reached, never before", "[core][retire]") {
  Stream *s = chip("chip_a")->default_stream, *t = chip("chip_b")->default_stream;
  uint64_t x = allocate(s, 64), y = allocate(t, 64);
  static std::atomic<int> released;
  released = 0;
  auto release = [](void* ctx) { released += *static_cast<int*>(ctx); };
  int by = 1;
  retire(nullptr, 0, release, &by);
  CHECK(released == 1);
  {
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    REQUIRE_OK(fill_bytes(t, y, 64, &kOne, 1));
    Point points[] = {s->here(), t->here()};
    retire(points, 2, release, &by);
    retire_poll();
    CHECK(released == 1);
  }
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(t->synchronize());
  retire_poll();
  CHECK(released == 2);
  CHECK(retire_pending() == 0);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
}

TEST_CASE("stream: 8 threads on one stream and on their own, with events between", "[core][stream][stress]") {
  Device* d = chip("chip_a");
  MockScript late("reorder=3");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Stream* own = *make_stream(d, 0);
      for (int round = 0; round < 30; ++round) {
        auto got = pool_allocate(own, 256);
        if (!got.ok()) {
          ++wrong;
          continue;
        }
        uint8_t value = uint8_t(i * 16 + round % 16), back[256];
        Event event(0);
        if (!fill_bytes(own, *got, 256, &value, 1).ok() || !event.record(own).ok() || !event.wait(d->default_stream).ok()) ++wrong;
        if (!copy_bytes(d->default_stream, number(back), *got, 256, 0).ok() || back[255] != value) ++wrong;
        if (!pool_used_on(*got, d->default_stream).ok() || !pool_free(*got).ok()) ++wrong;
      }
      if (!release_stream(own).ok()) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  REQUIRE_OK(synchronize_device(d));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("stream: a lost device ends every wait, stays lost, and still gives memory back", "[core][stream][failure]") {
  Device* d = chip("chip_b");
  Stream *s = d->default_stream, *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 4096);
  Event event(0);
  {
    MockHold hold;
    REQUIRE_OK(fill_bytes(s, x, 4096, &kOne, 1));
    REQUIRE_OK(event.record(s));
    REQUIRE_OK(pool_used_on(x, t));
    mock_control().lose(1);
  }
  CHECK(s->synchronize().code() == FLHAL_E_DEVICE_LOST);
  CHECK(d->lost());
  CHECK(event.synchronize().code() == FLHAL_E_DEVICE_LOST);
  CHECK(fill_bytes(s, x, 4096, &kOne, 1).code() == FLHAL_E_DEVICE_LOST);
  CHECK(last_error_text().find("chip_b is lost") != std::string::npos);
  CHECK_FALSE(pool_allocate(s, 1 << 20).ok());
  REQUIRE_OK(pool_free(x));
  CHECK(chip("chip_a")->default_stream->usable());
  REQUIRE_OK(release_stream(t));
  REQUIRE_OK(d->reset());
  Stream* again = d->default_stream;
  uint64_t y = allocate(again, 4096);
  REQUIRE_OK(fill_bytes(again, y, 4096, &kTwo, 1));
  CHECK(bytes_of(again, y, 4096)[9] == 2);
  REQUIRE_OK(pool_free(y));
  CHECK(check_stream(handle_of(s), "test").code() == FLHAL_E_INVALID);
}

TEST_CASE("stream: a call that met a failure which another thread clears at that moment has not run, and says so", "[core][stream][failure]") {
  Stream* s = chip("chip_a")->default_stream;
  s->poison(FLHAL_E_OP_FAILED, "broken");
  REQUIRE_FALSE(s->usable());
  s->clear_error();                               // between the caller's look and its question for the failure
  CHECK(s->unusable_failure("fill").code() == FLHAL_E_OP_FAILED);
  CHECK(last_error_text().find("another thread has cleared that meanwhile, so call again") != std::string::npos);
}
