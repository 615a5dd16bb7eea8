// tests/dispatch/plans_test.cc: which calls share a plan, when plans end, and planning from many threads.
#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "call.h"
#include "core/device.h"
#include "dispatch/plan_cache.h"
#include "support/mock_control.h"

using namespace flhal::test;

namespace {

// Plans the mock was asked for while `fn` ran.
template <typename Fn>
uint64_t planned(Fn&& fn) {
  uint64_t before = mock_counts().plan_creates;
  fn();
  return mock_counts().plan_creates - before;
}

// A fresh start: a change of settings ends every plan.
void forget_plans() {
  Setting warn("log_level", "error");
}

}  // namespace

TEST_CASE("plans: the same class is planned once, whatever the sizes", "[dispatch][plans]") {
  flhal_stream* s = stream_of("chip_a");
  forget_plans();
  Tensor a = floats(s, {2, 3}), out = empty(s, {2, 3});
  CHECK(planned([&] { REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK); }) == 1);
  CHECK(planned([&] {
          for (int i = 0; i < 5; ++i) REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK);
          Tensor b = floats(s, {5, 7}), r = empty(s, {5, 7});
          REQUIRE(Call{FLHAL_OP_ADD, {r}, {b, b}}.run() == FLHAL_OK);
        }) == 0);
}

TEST_CASE("plans: a changed op, dtype, rank, layout, alias, alignment, attribute or device is another plan",
          "[dispatch][plans][keys]") {
  flhal_stream* s = stream_of("chip_a");
  forget_plans();
  Tensor a = floats(s, {4, 4}), out = empty(s, {4, 4});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}}.run() == FLHAL_OK);
  auto once = [&](const Call& call) {
    CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 1);
    CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 0);
  };
  once({FLHAL_OP_MUL, {out}, {a, a}});
  Tensor d = empty(s, {4, 4}, FLHAL_F64);
  REQUIRE(Call{FLHAL_OP_COPY, {d}, {a}}.run() == FLHAL_OK);
  once({FLHAL_OP_ADD, {out}, {a, d}});
  once({FLHAL_OP_ADD, {d}, {a, a}});
  once({FLHAL_OP_ADD, {out}, {a, a}, {}, FLHAL_F64});
  Tensor flat = a.view({16}, {1}), flat_out = out.view({16}, {1});
  once({FLHAL_OP_ADD, {flat_out}, {flat, flat}});
  once({FLHAL_OP_ADD, {out}, {a, a.transposed()}});
  once({FLHAL_OP_ADD, {out}, {a, a.view({4}, {1})}});
  once({FLHAL_OP_ADD, {out}, {a, a.view({4, 4}, {0, 1})}});
  once({FLHAL_OP_ADD, {out}, {out, a}});
  Tensor big = floats(s, {5, 4});
  once({FLHAL_OP_ADD, {out}, {a, big.view({4, 4}, {4, 1}, 1)}});
  once({FLHAL_OP_ADD, {out}, {a, a}, {number(FLHAL_ATTR_ADD_ALPHA, 2)}});
  Tensor b = floats(stream_of("chip_b"), {4, 4}), b_out = empty(stream_of("chip_b"), {4, 4});
  once({FLHAL_OP_ADD, {b_out}, {b, b}});
}

TEST_CASE("plans: a dynamic attribute's value is no part of the plan", "[dispatch][plans][keys]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}, {number(FLHAL_ATTR_ADD_ALPHA, 2)}}.run() == FLHAL_OK);
  CHECK(values(out) == std::vector<float>{3, 6, 9, 12});
  CHECK(planned([&] {
          REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, a}, {number(FLHAL_ATTR_ADD_ALPHA, 3)}}.run() == FLHAL_OK);
        }) == 0);
  CHECK(values(out) == std::vector<float>{4, 8, 12, 16});
}

TEST_CASE("plans: a static attribute's value is part of the plan", "[dispatch][plans][keys]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {2, 2}, 0), out = empty(s, {2, 2});
  REQUIRE(Call{FLHAL_OP_SOFTMAX, {out}, {x}, {integer(FLHAL_ATTR_SOFTMAX_DIM, 1)}}.run() == FLHAL_OK);
  auto rows = values(out);
  REQUIRE(Call{FLHAL_OP_SOFTMAX, {out}, {x}, {integer(FLHAL_ATTR_SOFTMAX_DIM, 0)}}.run() == FLHAL_OK);
  auto columns = values(out);
  CHECK(rows[0] == Approx(1 / (1 + std::exp(1.0))));
  CHECK(columns[0] == Approx(1 / (1 + std::exp(2.0))));
}

TEST_CASE("plans: a plan that depends on sizes is found again by its sizes", "[dispatch][plans][exact]") {
  flhal_stream* s = stream_of("chip_a");
  forget_plans();
  auto matmul = [&](int64_t n) {
    Tensor a = floats(s, {n, n}, 0, 0.5f), out = empty(s, {n, n});
    REQUIRE(Call{FLHAL_OP_MATMUL, {out}, {a, a, absent()}}.run() == FLHAL_OK);
    auto x = values(a), y = values(out);
    float want = 0;
    for (int64_t k = 0; k < n; ++k) want += x[k] * x[k * n];
    CHECK(y[0] == Approx(want));
  };
  CHECK(planned([&] { matmul(2); }) == 1);
  CHECK(planned([&] { matmul(3); }) == 1);
  CHECK(planned([&] {
          matmul(2);
          matmul(3);
          matmul(2);
        }) == 0);
  // Many sizes: the list of exact plans is bounded, the results stay right.
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 1; n < 40; ++n) matmul(n);
}

TEST_CASE("plans: the list of exact plans is bounded", "[dispatch][plans][exact]") {
  flhal_stream* s = stream_of("chip_a");
  uint64_t live_before = mock_counts().live_plans;
  Tensor a = floats(s, {1, 6000}), out = empty(s, {1, 1});
  for (int64_t k = 1; k <= 5000; ++k)
    REQUIRE(Call{FLHAL_OP_MATMUL, {out}, {a.view({1, k}, {6000, 1}), a.view({k, 1}, {1, 1}), absent()}}.run() == FLHAL_OK);
  REQUIRE(flhal_stream_synchronize(s) == FLHAL_OK);
  forget_plans();
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {out, out}}.run() == FLHAL_OK);
  // 16 shards of kExactPlansPerShard, and what this thread's table still holds.
  CHECK(mock_counts().live_plans <= live_before + 16 * flhal::kExactPlansPerShard + flhal::kSlots);
}

TEST_CASE("plans: a new generation of the device ends its plans", "[dispatch][plans]") {
  flhal_stream* s = stream_of("chip_b");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  Call call{FLHAL_OP_MUL, {out}, {a, a}};
  REQUIRE(call.run() == FLHAL_OK);
  CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 0);
  flhal::device_from(device_named("chip_b"))->generation.fetch_add(1);
  CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 1);
}

TEST_CASE("plans: a changed setting ends all plans", "[dispatch][plans]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  Call call{FLHAL_OP_MUL, {out}, {a, a}};
  REQUIRE(call.run() == FLHAL_OK);
  CHECK(call.route(device_named("chip_a")) == "native");
  {
    Setting forced("route", "kernel");
    CHECK(call.route(device_named("chip_a")) == "kernel");
    REQUIRE(call.run() == FLHAL_OK);
  }
  CHECK(call.route(device_named("chip_a")) == "native");
}

TEST_CASE("plans: a native plan that declines while running is replaced by the next route", "[dispatch][at_once][plans]") {
  flhal_stream* s = stream_of("chip_a");
  forget_plans();
  Tensor a = floats(s, {4}), out = empty(s, {4});
  Call call{FLHAL_OP_ADD, {out}, {a, a}};
  REQUIRE(call.run() == FLHAL_OK);
  uint64_t runs = mock_counts().plan_runs;
  {
    MockScript script("fail_call=plan_run:all:declined");
    REQUIRE(call.run() == FLHAL_OK);
    CHECK(values(out) == std::vector<float>{2, 4, 6, 8});
  }
  REQUIRE(call.run() == FLHAL_OK);   // not tried again, although it would work now
  REQUIRE(flhal_stream_synchronize(s) == FLHAL_OK);
  CHECK(mock_counts().plan_runs == runs);
  std::string reason;
  CHECK(call.route(device_named("chip_a"), &reason) == "kernel");
  CHECK_THAT(reason, Catch::Contains("declined while running"));
}

TEST_CASE("plans: a plugin's refusal is remembered with its reason", "[dispatch][plans]") {
  MockScript script("no_op=add");
  flhal_stream* s = stream_of("chip_a");
  forget_plans();
  Tensor a = floats(s, {4}), out = empty(s, {4});
  Call call{FLHAL_OP_ADD, {out}, {a, a}};
  CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 1);
  CHECK(planned([&] { REQUIRE(call.run() == FLHAL_OK); }) == 0);
  std::string reason;
  CHECK(call.route(device_named("chip_a"), &reason) == "kernel");
  CHECK(reason == "native: the plugin declined: the script takes this op away");
  forget_plans();
}

TEST_CASE("plans: a forced route that cannot be had declines with the reason", "[dispatch][plans]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  Call call{FLHAL_OP_EXP, {out}, {a}};
  {
    Setting forced("route", "native");
    REQUIRE(call.run() == FLHAL_DECLINED);
    CHECK_THAT(flhal_last_decline(), Catch::Contains("mock has add, mul and matmul only"));
    CHECK(call.route(device_named("chip_a")) == "declined");
  }
  {
    Setting forced("route", "composite");
    REQUIRE(call.run() == FLHAL_DECLINED);
    CHECK_THAT(flhal_last_decline(), Catch::Contains("no composite is written"));
  }
}

TEST_CASE("plans: many threads that meet a new class make one plan and right results", "[dispatch][plans][threads]") {
  forget_plans();
  constexpr int kThreads = 8;
  std::atomic<int> ready{0}, wrong{0};
  uint64_t made = planned([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        flhal_stream* s = stream_of("chip_a");
        Tensor a = floats(s, {64}, static_cast<float>(t)), out = empty(s, {64});
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        for (int i = 0; i < 200; ++i) {
          if (Call{FLHAL_OP_ADD, {out}, {a, a}}.run() != FLHAL_OK) ++wrong;
          if (Call{FLHAL_OP_MUL, {out}, {out, a}}.run() != FLHAL_OK) ++wrong;
        }
        Tensor twice = empty(s, {64});
        if (Call{FLHAL_OP_ADD, {twice}, {a, a}}.run() != FLHAL_OK || values(twice)[1] != 2.0f * static_cast<float>(t + 1))
          ++wrong;
      });
    for (auto& thread : threads) thread.join();
  });
  CHECK(wrong == 0);
  CHECK(made == 2);
}

TEST_CASE("plans: settings that change while threads run lose no call", "[dispatch][plans][threads]") {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      flhal_stream* s = stream_of("chip_a");
      Tensor a = floats(s, {16}, static_cast<float>(t)), out = empty(s, {16});
      while (!stop)
        if (Call{FLHAL_OP_ADD, {out}, {a, a}}.run() != FLHAL_OK) ++wrong;
    });
  for (int i = 0; i < 50; ++i) {
    Setting forced("route", i % 2 ? "kernel" : "auto");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
