// tests/worker/calls_test.cc: ops and launches that a worker runs: what a queued call owns, refuses and fails with.
#include <catch2/catch.hpp>

#include <cstring>

#include "core/device.h"
#include "core/event.h"
#include "core/worker.h"
#include "dispatch/call.h"
#include "support/mock_control.h"

using namespace flhal::test;
using Catch::Contains;
using flhal::Stream;

namespace {

// Holds a stream's worker until it is gone.
class Gate {
 public:
  explicit Gate(flhal_stream* s) {
    Stream* stream = flhal::stream_from(s);
    REQUIRE(stream->queues_calls());
    REQUIRE(stream->queue(flhal::work_of("gate", [open = open_](Stream*) -> flhal::Status {
      open->wait(false);
      return FLHAL_OK;
    })).ok());
  }
  ~Gate() {
    *open_ = true;
    open_->notify_all();
  }
  Gate(const Gate&) = delete;

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

flhal_status synchronize(flhal_stream* s) { return flhal_stream_synchronize(s); }

// Overwrites whatever memory of that size the stream gives out next: what a queued call still needs must not be in it.
void scribble(flhal_stream* s, const std::vector<int64_t>& sizes) {
  for (int i = 0; i < 4; ++i) {
    Tensor t = empty(s, sizes);
    float wrong = -1;
    REQUIRE(flhal_fill(s, t.address, uint64_t(t.elements()) * 4, &wrong, 4) == FLHAL_OK);
  }
}

}  // namespace

TEST_CASE("worker: an op owns its call, and its operands may be freed at once, by every route", "[worker][dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  struct Way { const char *route, *planned; };
  for (Way way : {Way{"auto", "native"}, Way{"kernel", "kernel"}, Way{"host", "host"}}) {
    CAPTURE(way.route);
    Setting two("async_level", "2"), forced("route", way.route);
    Tensor out = empty(s, {3, 4});
    {
      Gate gate(s);
      {
        Tensor a = floats(s, {3, 4}), b = floats(s, {4}, 10);
        Call call{FLHAL_OP_ADD, {out}, {a, b}};
        CHECK(call.route(device_named("chip_a")) == way.planned);
        REQUIRE(call.run() == FLHAL_OK);
        CHECK(flhal_stream_query(s) == FLHAL_NOT_READY);
      }
      scribble(s, {3, 4});
      scribble(s, {4});
    }
    CHECK(values(out) == std::vector<float>{11, 13, 15, 17, 15, 17, 19, 21, 19, 21, 23, 25});
  }
}

TEST_CASE("worker: a chain of temporaries gives level 1's numbers", "[worker][dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  auto chain = [&] {
    Tensor x = floats(s, {8, 8}, 0.125f, 0.01f), w = floats(s, {8, 8}, -0.2f, 0.007f);
    for (int i = 0; i < 30; ++i) {
      Tensor y = empty(s, {8, 8}), z = empty(s, {8, 8});
      REQUIRE(Call{FLHAL_OP_MATMUL, {y}, {x, w, absent()}}.run() == FLHAL_OK);
      REQUIRE(Call{FLHAL_OP_ADD, {z}, {y, x}}.run() == FLHAL_OK);
      Tensor r = empty(s, {8, 8});
      REQUIRE(Call{FLHAL_OP_MUL, {r}, {z, w}}.run() == FLHAL_OK);
      x = empty(s, {8, 8});
      REQUIRE(Call{FLHAL_OP_ADD, {x}, {r, y}}.run() == FLHAL_OK);
    }
    return values(x);
  };
  std::vector<float> want = chain();
  for (int i = 0; i < 5; ++i) {
    Setting two("async_level", "2");
    CHECK(chain() == want);
  }
}

TEST_CASE("worker: host scalars and attributes are read before the call returns", "[worker][dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  Setting two("async_level", "2");
  Tensor a = floats(s, {4}), out = empty(s, {4}), drawn = empty(s, {8}), again = empty(s, {8});
  {
    Gate gate(s);
    {
      auto value = std::make_unique<double>(5);
      Tensor scalar;
      scalar.dtype = FLHAL_F64;
      scalar.flags = FLHAL_TENSOR_HOST_SCALAR;
      scalar.address = reinterpret_cast<uint64_t>(value.get());
      REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, scalar}}.run() == FLHAL_OK);
      *value = 1000;
    }
    for (Tensor* t : {&drawn, &again}) {
      auto philox = std::make_unique<flhal_philox>(flhal_philox{42, 7});
      flhal_attr attr{};
      attr.key = FLHAL_ATTR_UNIFORM_PHILOX;
      attr.kind = FLHAL_ATTR_PHILOX;
      attr.count = 1;
      attr.v.p = philox.get();
      REQUIRE(Call{FLHAL_OP_UNIFORM, {*t}, {}, {attr}}.run() == FLHAL_OK);
      *philox = {1, 1};
    }
  }
  CHECK(values(out) == std::vector<float>{6, 7, 8, 9});
  CHECK(values(drawn) == values(again));
}

TEST_CASE("worker: a plan that withdraws on the worker is followed by the next route", "[worker][dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  Setting two("async_level", "2");
  Tensor out = empty(s, {2, 5});
  {
    Gate gate(s);
    MockScript script("fail_call=plan_run:1:declined");
    {
      Tensor a = floats(s, {2, 5}), b = floats(s, {2, 5}, 1);
      REQUIRE(Call{FLHAL_OP_MUL, {out}, {a, b}}.run() == FLHAL_OK);
    }
    scribble(s, {2, 5});
  }
  CHECK(values(out)[3] == 4 * 4);
}

TEST_CASE("worker: refusals are the call's, with the sentences of level 1", "[worker][dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {2, 3}), b = floats(s, {4}), out = empty(s, {2, 3});
  Call wrong{FLHAL_OP_ADD, {out}, {a, b}};
  REQUIRE(wrong.run() == FLHAL_E_INVALID);
  std::string sentence = last_text();
  Setting two("async_level", "2");
  CHECK(wrong.run() == FLHAL_E_INVALID);
  CHECK(last_text() == sentence);
  {
    Setting strict("fallback_policy", "strict"), forced("route", "host");
    CHECK(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_E_DENIED);
    REQUIRE(flhal_fallback_push("auto", "") == FLHAL_OK);   // the caller's scope holds for what the worker runs
    CHECK(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK);
    REQUIRE(flhal_fallback_pop() == FLHAL_OK);
    CHECK(synchronize(s) == FLHAL_OK);
  }
  CHECK(values(out)[5] == 12);
}

TEST_CASE("worker: an operator that fails late names itself at the next wait", "[worker][dispatch][failure]") {
  flhal_stream* s = nullptr;
  REQUIRE(flhal_stream_create(device_named("chip_a"), 0, &s) == FLHAL_OK);
  Setting two("async_level", "2");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  REQUIRE(synchronize(s) == FLHAL_OK);
  {
    MockScript script("fail_call=plan_run:1:failed");
    REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK);
    CHECK(synchronize(s) == FLHAL_E_OP_FAILED);
  }
  CHECK_THAT(last_text(), Contains("add, call ") && Contains("of chip_a") && Contains("async_level 2"));
  CHECK(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_E_OP_FAILED);
  REQUIRE(flhal_stream_clear_error(s) == FLHAL_OK);
  CHECK(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK);
  CHECK(values(out)[3] == 8);
  {
    Tensor table = floats(s, {4, 2}), index = make<int64_t>(s, {2}, {1, 9}), rows = empty(s, {2, 2});
    REQUIRE(Call{FLHAL_OP_INDEX_SELECT, {rows}, {table, index}}.run() == FLHAL_OK);
    CHECK(synchronize(s) == FLHAL_E_OP_FAILED);
    CHECK_THAT(last_text(), Contains("index_select") && Contains("9"));
    REQUIRE(flhal_stream_clear_error(s) == FLHAL_OK);
  }
  out = a = Tensor{};
  REQUIRE(flhal_stream_release(s) == FLHAL_OK);
}

namespace {
void scale(const void* const* argv, uint64_t first, uint64_t count) {
  auto* out = static_cast<float*>(const_cast<void*>(argv[0]));
  auto* in = static_cast<const float*>(argv[1]);
  for (uint64_t i = first; i < first + count; ++i) out[i] = in[i] * *static_cast<const float*>(argv[2]);
}
const flhal_host_function kFunctions[] = {{"scale", scale}};
const flhal_host_module kModule{sizeof(flhal_host_module), 1, kFunctions};
}  // namespace

TEST_CASE("worker: a queued launch owns its arguments and its module", "[worker][launch]") {
  flhal_stream* s = stream_of("chip_a");
  Setting two("async_level", "2");
  Tensor out = empty(s, {8});
  uint64_t before = mock_counts(0).live_modules;
  {
    Gate gate(s);
    Tensor in = floats(s, {8});
    flhal_module* module = nullptr;
    flhal_function* f = nullptr;
    REQUIRE(flhal_module_load(device_named("chip_a"), FLHAL_DIALECT_HOST, &kModule, sizeof kModule, nullptr, &module) == FLHAL_OK);
    REQUIRE(flhal_function_get(module, "scale", &f) == FLHAL_OK);
    float factor = 3;
    flhal_kernel_arg args[3] = {{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, out.address},
                                {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, in.address},
                                {FLHAL_KERNEL_ARG_VALUE, sizeof factor, &factor, 0}};
    const uint64_t groups[3] = {8, 1, 1};
    const uint32_t size[3] = {1, 1, 1};
    REQUIRE(flhal_launch(s, f, groups, size, args, 3) == FLHAL_OK);
    factor = 1000;
    std::memset(args, 0, sizeof args);
    REQUIRE(flhal_module_release(module) == FLHAL_OK);
    CHECK(mock_counts(0).live_modules == before + 1);
  }
  CHECK(values(out)[7] == 24);
  flhal::retire_poll();
  CHECK(mock_counts(0).live_modules == before);
}
