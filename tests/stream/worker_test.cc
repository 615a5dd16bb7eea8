// tests/stream/worker_test.cc: async level 2 on a chip without queues (ram): order, ownership, failures, levels.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "core/bridge.h"
#include "core/fork_guard.h"
#include "memory/block_pool.h"
#include "stream/level.h"

using namespace flhal;
using namespace flhal::test;

static const uint8_t kOne = 1, kTwo = 2, kThree = 3;
using Bytes = std::vector<uint8_t>;

TEST_CASE("worker: at level 2 a call returns before its work, on a chip without queues", "[core][worker]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  uint64_t x = allocate(s, 64);
  Point before = s->here();
  {
    Gate gate(s);
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    CHECK(s->query().code() == FLHAL_NOT_READY);
    CHECK_FALSE(s->reached(s->here().sequence));
    CHECK(s->reached(before.sequence));
  }
  REQUIRE_OK(s->synchronize());
  CHECK(s->query().code() == FLHAL_OK);
  CHECK(bytes_of(s, x, 64) == Bytes(64, 1));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
}

TEST_CASE("worker: arguments are checked by the call, not by the worker", "[core][worker]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = d->default_stream;
  uint64_t x = allocate(s, 64);
  CHECK(fill_bytes(s, x, 65, &kOne, 1).code() == FLHAL_E_INVALID);
  CHECK(copy_bytes(s, x, x + 8, 32, 0).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("overlap") != std::string::npos);
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("worker: threads start with the first call and end with the level", "[core][worker]") {
  Device* d = chip("ram");
  REQUIRE(Worker::running_threads() == 0);
  uint64_t x = 0;
  {
    Level two("2");
    Stream* s = *make_stream(d, 0);
    CHECK(Worker::running_threads() == 0);
    x = allocate(s, 64);
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    REQUIRE_OK(s->synchronize());
    CHECK(Worker::running_threads() == 1);
    REQUIRE_OK(release_stream(s));
  }
  CHECK(Worker::running_threads() == 0);
  CHECK(bytes_of(d->default_stream, x, 64) == Bytes(64, 1));
  REQUIRE_OK(pool_free(x));
}

TEST_CASE("worker: a pageable source may be gone when the upload returns, also behind other work", "[core][worker][copy]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  constexpr uint64_t kBytes = 3 << 20;           // three chunks of staging
  uint64_t x = allocate(s, kBytes);
  {
    Gate gate(s);
    auto source = std::make_unique<Bytes>(kBytes, uint8_t(7));
    REQUIRE_OK(copy_bytes(s, x, number(source->data()), kBytes, FLHAL_COPY_MAY_RETURN_EARLY));
    std::memset(source->data(), 9, kBytes);
    source.reset();
    CHECK(s->query().code() == FLHAL_NOT_READY);
  }
  CHECK(bytes_of(s, x, kBytes) == Bytes(kBytes, 7));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
}

TEST_CASE("worker: pinned memory freed behind an early copy is not handed out before it ends", "[core][worker][copy]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  uint64_t x = allocate(s, 4096);
  {
    Gate gate(s);
    void* pinned = *pinned_alloc(d, 4096);
    std::memset(pinned, 5, 4096);
    REQUIRE_OK(copy_bytes(s, x, number(pinned), 4096, FLHAL_COPY_MAY_RETURN_EARLY));
    REQUIRE_OK(pinned_free(pinned));
    for (int i = 0; i < 20; ++i) {               // whoever gets it would write over the source
      void* other = *pinned_alloc(d, 4096);
      CHECK(other != pinned);
      std::memset(other, 6, 4096);
      REQUIRE_OK(pinned_free(other));
    }
  }
  CHECK(bytes_of(s, x, 4096) == Bytes(4096, 5));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
}

TEST_CASE("worker: a block freed behind queued work goes to its own stream alone", "[core][worker][memory]") {
  Device* d = chip("ram");
  Level two("2");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  for (uint64_t bytes : {4096ull, 100000ull, 1000000ull}) {
    CAPTURE(bytes);
    Gate gate(s);
    uint64_t x = allocate(s, bytes);
    REQUIRE_OK(fill_bytes(s, x, bytes, &kOne, 1));
    REQUIRE_OK(pool_free(x));
    uint64_t other = allocate(t, bytes), same = allocate(s, bytes);
    CHECK(other != x);
    CHECK(same == x);
    REQUIRE_OK(pool_free(other));
    REQUIRE_OK(pool_free(same));
  }
  REQUIRE_OK(synchronize_device(d));
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("worker: a block used on another stream waits for that stream's worker", "[core][worker][memory]") {
  Device* d = chip("ram");
  Level two("2");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 4096);
  {
    Gate gate(t);
    REQUIRE_OK(fill_bytes(t, x, 4096, &kOne, 1));
    REQUIRE_OK(pool_used_on(x, t));
    REQUIRE_OK(pool_free(x));
    CHECK(stats_of(d).pending_free >= 4096);
    uint64_t y = allocate(s, 4096);
    CHECK(y != x);
    REQUIRE_OK(pool_free(y));
  }
  REQUIRE_OK(t->synchronize());
  retire_poll();
  CHECK(stats_of(d).pending_free == 0);
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("worker: what a call takes while it runs is never memory that waits for a later call", "[core][worker][memory]") {
  // The caller frees x when its last reader is queued; an earlier call must not get it as a temporary.
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  struct Case { uint64_t bytes; bool from_inner; };
  for (Case c : {Case{512, true}, Case{4096, true}, Case{300000, true}, Case{300000, false}}) {
    CAPTURE(c.bytes, c.from_inner);
    const uint64_t bytes = c.bytes;
    uint64_t x = allocate(s, bytes), y = allocate(s, bytes);
    REQUIRE_OK(fill_bytes(s, x, bytes, &kOne, 1));
    {
      Gate gate(s);
      for (int i = 0; i < 4; ++i)
        REQUIRE_OK(s->queue(work_of("scribble", [=](Stream* inner) -> Status {
          FLHAL_ASSIGN(Temporary scratch, Temporary::make(c.from_inner ? inner : s, bytes));
          return fill_bytes(inner, scratch.address(), bytes, &kThree, 1);
        })));
      REQUIRE_OK(copy_bytes(s, y, x, bytes, 0));
      REQUIRE_OK(pool_free(x));
    }
    // The last case takes from the stream's own memory, as it would be without an inner stream: then this test must see it.
    CHECK((bytes_of(s, y, bytes) == Bytes(bytes, 1)) == c.from_inner);
    REQUIRE_OK(pool_free(y));
  }
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
  REQUIRE_OK(release_stream(s));
}

TEST_CASE("worker: a late failure names op, call and stream, skips what is behind it, and ends with clear_error", "[core][worker][failure]") {
  Device* d = chip("ram");
  Level two("2");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64);
  REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
  uint64_t number_of_call;
  {
    Gate gate(s);
    number_of_call = s->here().sequence + 1;
    REQUIRE_OK(s->queue(work_of("matmul", [](Stream* inner) {
      return inner->submit("matmul", [](flhal_p_stream*) -> flhal_status { return FLHAL_E_OP_FAILED; });
    })));
    REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
  }
  CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
  std::string text = last_error_text();
  INFO(text);
  CHECK(text.find(fmt::format("matmul, call {} on stream {} of ram", number_of_call, s->id)) != std::string::npos);
  CHECK(text.find("async_level 2") != std::string::npos);
  CHECK(fill_bytes(s, x, 64, &kTwo, 1).code() == FLHAL_E_OP_FAILED);
  CHECK(t->usable());
  s->clear_error();
  CHECK(bytes_of(s, x, 64) == Bytes(64, 1));
  REQUIRE_OK(fill_bytes(s, x, 64, &kThree, 1));
  CHECK(bytes_of(s, x, 64) == Bytes(64, 3));
  // A refusal that only running finds is a failure of the stream, too: its result would be missing.
  REQUIRE_OK(s->queue(work_of("gather", [](Stream*) -> Status { return fail(FLHAL_E_INVALID, "index 9 of 4"); })));
  CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
  CHECK(last_error_text().find("index 9 of 4") != std::string::npos);
  s->clear_error();
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("worker: the caller cannot run ahead for ever", "[core][worker]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  uint64_t x = allocate(s, 64);
  std::atomic<int> queued{0};
  std::thread caller;
  {
    Gate gate(s);
    caller = std::thread([&] {
      for (int i = 0; i < 5000; ++i, ++queued)
        if (!fill_bytes(s, x, 64, &kOne, 1).ok()) break;
    });
    while (queued < 1000) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK(queued < 1100);
  }
  caller.join();
  CHECK(queued == 5000);
  REQUIRE_OK(s->synchronize());
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
}

TEST_CASE("worker: events between two workers: order, query, time", "[core][worker][event]") {
  Device* d = chip("ram");
  Level two("2");
  Stream *s = *make_stream(d, 0), *t = *make_stream(d, 0);
  uint64_t x = allocate(s, 64), y = allocate(t, 64), ns = 0;
  REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
  REQUIRE_OK(s->synchronize());
  uint64_t waits = bridge_host_waits();
  Event begin(FLHAL_EVENT_WITH_TIMING), end(FLHAL_EVENT_WITH_TIMING), plain(0);
  {
    Gate gate(s);
    REQUIRE_OK(begin.record(s));
    REQUIRE_OK(fill_bytes(s, x, 64, &kTwo, 1));
    REQUIRE_OK(s->queue(work_of("sleep", [](Stream*) -> Status {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return FLHAL_OK;
    })));
    REQUIRE_OK(end.record(s));
    REQUIRE_OK(plain.record(s));
    CHECK(plain.query().code() == FLHAL_NOT_READY);
    CHECK(Event::elapsed_ns(&begin, &end, &ns).code() == FLHAL_NOT_READY);
    REQUIRE_OK(plain.wait(t));
    REQUIRE_OK(copy_bytes(t, y, x, 64, 0));
    CHECK(t->query().code() == FLHAL_NOT_READY);
  }
  CHECK(bytes_of(t, y, 64) == Bytes(64, 2));
  REQUIRE_OK(end.synchronize());
  REQUIRE_OK(Event::elapsed_ns(&begin, &end, &ns));
  CHECK(ns >= 4000000);
  CHECK(bridge_host_waits() == waits);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("bridge: chips of two makers wait for each other without the host", "[core][worker][bridge]") {
  Device *ram = chip("ram"), *mock = chip("chip_a");
  Level two("2");
  Stream *s = *make_stream(ram, 0), *t = *make_stream(mock, 0);
  uint64_t x = allocate(s, 64), y = allocate(t, 64), host_waits = bridge_host_waits(), signals = bridge_signals();
  REQUIRE_OK(fill_bytes(t, y, 64, &kOne, 1));
  Event event(0);
  {
    INFO("the chip with queues waits for the worker");
    Gate gate(s);
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    REQUIRE_OK(event.record(s));
    REQUIRE_OK(event.wait(t));
    REQUIRE_OK(fill_bytes(t, y, 64, &kTwo, 1));
    CHECK(bridge_signals() == signals + 1);
    CHECK(t->query().code() == FLHAL_NOT_READY);
  }
  CHECK(bytes_of(t, y, 64) == Bytes(64, 2));
  {
    INFO("the worker waits for the chip with queues");
    MockHold hold;
    REQUIRE_OK(fill_bytes(t, y, 64, &kThree, 1));
    REQUIRE_OK(event.record(t));
    REQUIRE_OK(event.wait(s));
    REQUIRE_OK(fill_bytes(s, x, 64, &kThree, 1));
    CHECK(s->query().code() == FLHAL_NOT_READY);
  }
  CHECK(bytes_of(s, x, 64) == Bytes(64, 3));
  CHECK(bridge_host_waits() == host_waits);
  REQUIRE_OK(synchronize_device(mock));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(pool_free(y));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("bridge: signalled events do not pile up", "[core][bridge][MEM-05]") {
  Device *ram = chip("ram"), *mock = chip("chip_a");
  Level two("2");
  Stream *s = *make_stream(ram, 0), *t = *make_stream(mock, 0);
  uint64_t x = allocate(s, 64), live = 0;
  for (int i = 0; i < 300; ++i) {
    Event event(0);
    {
      Gate gate(s);
      REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
      REQUIRE_OK(event.record(s));
      REQUIRE_OK(event.wait(t));
    }
    REQUIRE_OK(t->synchronize());
    retire_poll();
    if (i == 20) live = mock_counts(0).live_events;
  }
  CHECK(mock_counts(0).live_events <= live + 2);
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
  CHECK(mock_counts().misuse == 0);
}

TEST_CASE("bridge: a failure crosses makers both ways", "[core][worker][bridge][failure]") {
  Device *ram = chip("ram"), *mock = chip("chip_a");
  Level two("2");
  Stream *s = *make_stream(ram, 0), *t = *make_stream(mock, 0);
  uint64_t x = allocate(t, 64);
  Event event(0);
  {
    Gate gate(s);
    REQUIRE_OK(s->queue(work_of("softmax", [](Stream*) -> Status { return fail(FLHAL_E_OP_FAILED, "it broke"); })));
    REQUIRE_OK(event.record(s));
    REQUIRE_OK(event.wait(t));
  }
  CHECK(t->synchronize().code() == FLHAL_E_OP_FAILED);
  std::string text = last_error_text();
  INFO(text);
  CHECK(text.find(fmt::format("stream {} of chip_a waited for stream {} of ram", t->id, s->id)) != std::string::npos);
  CHECK(text.find("softmax") != std::string::npos);
  s->clear_error();
  t->clear_error();
  {
    MockScript script("fail_work=fill:1,delay_ms=5");
    REQUIRE_OK(fill_bytes(t, x, 64, &kOne, 1));
    REQUIRE_OK(event.record(t));
    REQUIRE_OK(event.wait(s));
    CHECK(s->synchronize().code() == FLHAL_E_OP_FAILED);
    text = last_error_text();
    INFO(text);
    CHECK(text.find(fmt::format("stream {} of ram waited for stream {} of chip_a", s->id, t->id)) != std::string::npos);
  }
  s->clear_error();
  t->clear_error();
  REQUIRE_OK(t->synchronize());
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
  REQUIRE_OK(release_stream(t));
}

TEST_CASE("worker: the level is switched at any time, from several threads at work", "[core][worker][stress]") {
  Device* d = chip("ram");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, rounds{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Stream* own = *make_stream(d, 0);
      for (int round = 0; !stop; ++round, ++rounds) {
        auto x = pool_allocate(own, 2048), y = pool_allocate(own, 2048);
        if (!x.ok() || !y.ok()) {
          ++wrong;
          break;
        }
        uint8_t value = uint8_t(i * 16 + round % 16), back[2048], source[2048];
        std::memset(source, value, sizeof source);
        Event event(round % 2 ? FLHAL_EVENT_WITH_TIMING : 0);
        bool well = copy_bytes(own, *x, number(source), 2048, 0).ok();
        std::memset(source, 0xee, sizeof source);
        well = well && copy_bytes(own, *y, *x, 2048, 0).ok() && fill_bytes(own, *x, 2048, &kOne, 1).ok() &&
               event.record(own).ok() && event.wait(d->default_stream).ok() && pool_free(*x).ok();
        well = well && copy_bytes(d->default_stream, number(back), *y, 2048, 0).ok() && back[0] == value && back[2047] == value;
        well = well && pool_used_on(*y, d->default_stream).ok() && pool_free(*y).ok();
        if (!well) ++wrong;
      }
      if (!release_stream(own).ok()) ++wrong;
    });
  }
  const char* levels[] = {"2", "1", "2", "0"};
  for (int i = 0; i < 120 / kFewer; ++i) {
    REQUIRE_OK(config_set("async_level", levels[i % 4]));
    int seen = rounds;
    while (rounds < seen + 3 && wrong == 0) std::this_thread::yield();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  REQUIRE_OK(config_set("async_level", "1"));
  CHECK(Worker::running_threads() == 0);
  REQUIRE_OK(synchronize_device(d));
  REQUIRE_OK(static_cast<BlockPool*>(d->pool)->check());
}

TEST_CASE("worker: a forked child is refused and frees silently, the parent's workers live on", "[core][worker][fork]") {
  Device* d = chip("ram");
  Level two("2");
  Stream* s = *make_stream(d, 0);
  uint64_t x = allocate(s, 64);
  install_fork_guard();
  {
    Gate gate(s);
    REQUIRE_OK(fill_bytes(s, x, 64, &kOne, 1));
    pid_t child = fork();
    if (child == 0) {
      bool refused = check_stream(handle_of(s), "test").code() == FLHAL_E_FORKED;
      bool silent = pool_free(x).ok();
      _exit(refused && silent ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(bytes_of(s, x, 64) == Bytes(64, 1));
  REQUIRE_OK(pool_free(x));
  REQUIRE_OK(release_stream(s));
}
