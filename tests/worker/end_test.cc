// tests/worker/end_test.cc: how work that is queued for a worker ends: with the process, with shutdown, with a lost device.
#include <catch2/catch.hpp>

#include "core/device.h"
#include "core/worker.h"
#include "dispatch/call.h"
#include "support/mock_control.h"

using namespace flhal::test;
using Catch::Contains;

TEST_CASE("worker: a process ends with calls queued", "[worker][exit]") {
  for (const char* how : {"return", "exit", "shutdown"}) {
    CAPTURE(how);
    TestWorld world;
    world.add_plugin("mock");
    world.mock("chips=a,no_streams=1,delay_ms=1");
    ProcessResult r = world.run({helper("exit_with_work"), how});
    INFO(r.describe());
    CHECK(r.ok());
    CHECK_THAT(r.out, Contains("queued 200, not ready"));
    if (std::string(how) == "shutdown") CHECK_THAT(r.out, Contains("shut down"));
  }
}

// Goal: no driver is torn down under its running work. Method: a handler that runs after flhal's asks the stream.
TEST_CASE("exit: a process ends when the chips' own queues rest", "[worker][exit]") {
  for (const char* how : {"return", "exit"}) {
    CAPTURE(how);
    TestWorld world;
    world.add_plugin("mock");
    world.mock("chips=a,delay_ms=2");
    ProcessResult r = world.run({helper("exit_with_work"), how});
    INFO(r.describe());
    CHECK(r.ok());
    CHECK_THAT(r.out, Contains("queued 200, not ready"));
    if (std::string(how) == "return") CHECK_THAT(r.out, Contains("at the end: ready"));
    else CHECK_THAT(r.err, Contains("another thread goes on submitting"));
  }
}

// Work that never ends keeps no process: after the limit it ends, with its own status and with what it printed.
TEST_CASE("exit: a chip that hangs does not keep the process", "[worker][exit]") {
  TestWorld world;
  world.add_plugin("mock");
  world.mock("chips=a,delay_ms=60000");
  ProcessResult r = world.run({helper("exit_with_work"), "status"});
  INFO(r.describe());
  CHECK(r.exit_code == 7);
  CHECK_THAT(r.out, Contains("queued 200, not ready") && Contains("not flushed by the program"));
  CHECK_THAT(r.err, Contains("of chip_a has not finished in the 10 s since exit() was called"));
}

TEST_CASE("slot_watch: a slot that does not return is named once, with plugin and device", "[core][service]") {
  TestWorld world;
  world.add_plugin("mock");
  world.mock("chips=a,no_streams=1,delay_ms=2500");
  world.set("FLHAL_SLOW_SLOT_S", "1");
  ProcessResult r = world.run({helper("exit_with_work"), "one"});
  INFO(r.describe());
  CHECK(r.ok());
  const std::string line = "slot fill of plugin mock, device chip_a has not returned for ";
  size_t first = r.err.find(line);
  REQUIRE(first != std::string::npos);
  CHECK(r.err.find("has not returned", first + line.size()) == std::string::npos);
}

TEST_CASE("worker: a lost device drops what is queued, and comes back", "[worker][failure]") {
  flhal_device* device = device_named("chip_b");
  flhal_stream* s = flhal_stream_default(device);
  Setting two("async_level", "2");
  uint64_t x = 0;
  unsigned char one = 1, two_byte = 2;
  REQUIRE(flhal_alloc(s, 4096, &x) == FLHAL_OK);
  {
    MockScript slow("delay_ms=1");
    for (int i = 0; i < 50; ++i) REQUIRE(flhal_fill(s, x, 4096, &one, 1) == FLHAL_OK);
    mock_control().lose(1);
  }
  CHECK(flhal_stream_synchronize(s) == FLHAL_E_DEVICE_LOST);
  CHECK(flhal_fill(s, x, 4096, &one, 1) == FLHAL_E_DEVICE_LOST);
  CHECK_THAT(last_text(), Contains("chip_b is lost"));
  CHECK(flhal_free(x) == FLHAL_OK);
  REQUIRE(flhal_device_reset_error(device) == FLHAL_OK);
  s = flhal_stream_default(device);
  REQUIRE(flhal_alloc(s, 4096, &x) == FLHAL_OK);
  REQUIRE(flhal_fill(s, x, 4096, &two_byte, 1) == FLHAL_OK);
  unsigned char back = 0;
  REQUIRE(flhal_copy(s, reinterpret_cast<uint64_t>(&back), x + 9, 1, 0) == FLHAL_OK);
  CHECK(back == 2);
  CHECK(flhal_free(x) == FLHAL_OK);
}
