// tests/dispatch/vendor_ops_test.cc: ops that only a plugin knows, by name; plugins that refuse by size.
#include <catch2/catch.hpp>

#include <thread>

#include "call.h"
#include "support/mock_control.h"

using namespace flhal::test;
using Catch::Contains;

namespace {

constexpr const char* kSquares = "mock.sum_of_squares";

template <typename Fn>
flhal_status named(const char* name, const Call& call, Fn&& fn) {
  return call.with([&](const flhal_op_call* c) {
    flhal_op_call copy = *c;
    copy.name = name;
    return fn(&copy);
  });
}
flhal_status run_named(const char* name, const Call& call) {
  return named(name, call, [&](const flhal_op_call* c) { return flhal_op_run(call.outputs[0].stream, c); });
}
std::string route_named(flhal_device* device, const char* name, const Call& call, std::string* reason = nullptr) {
  uint32_t route = 99;
  const char* why = "";
  if (named(name, call, [&](const flhal_op_call* c) { return flhal_op_route(device, c, &route, &why); }) != FLHAL_OK) return last_text();
  if (reason) *reason = why;
  static const char* const names[] = {"none", "native", "kernel", "composite", "host", "declined"};
  return names[route];
}

}  // namespace

TEST_CASE("vendor ops: an op that only the plugin knows runs natively, by its name", "[dispatch][vendor]") {
  for (const char* chip : {"chip_a", "chip_b"}) {
    flhal_stream* s = stream_of(chip);
    Tensor a = floats(s, {2, 3}), b = floats(s, {3}, 10), out = empty(s, {2, 3});
    Call call{0, {out}, {a, b}};
    REQUIRE(run_named(kSquares, call) == FLHAL_OK);
    CHECK(values(out) == std::vector<float>{101, 125, 153, 116, 146, 180});
    CHECK(route_named(device_named(chip), kSquares, call) == "native");
    // Views, and in place: core checks what it can without knowing the op.
    Tensor t = floats(s, {3, 2});
    REQUIRE(run_named(kSquares, {0, {out}, {t.transposed(), a}}) == FLHAL_OK);
    CHECK(values(out) == std::vector<float>{2, 13, 34, 20, 41, 72});
    Tensor same = floats(s, {3});
    REQUIRE(run_named(kSquares, {0, {same}, {same, same}}) == FLHAL_OK);
    CHECK(values(same) == std::vector<float>{2, 8, 18});
  }
  const std::string routes = report("routes");
  CHECK_THAT(routes, Contains(kSquares));
}

TEST_CASE("vendor ops: one plan serves calls of one class, also from threads", "[dispatch][vendor][threads]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  REQUIRE(run_named(kSquares, {0, {out}, {a, a}}) == FLHAL_OK);
  const uint64_t before = mock_counts().plan_creates;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Tensor x = floats(s, {5}), y = empty(s, {5});
      for (int k = 0; k < 20; ++k) wrong += run_named(kSquares, {0, {y}, {x, x}}) != FLHAL_OK;
      wrong += values(y) != std::vector<float>{2, 8, 18, 32, 50};
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(mock_counts().plan_creates == before);
}

TEST_CASE("vendor ops: a chip whose plugin has no such op says so, whatever other plugins have", "[dispatch][vendor]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  REQUIRE(run_named(kSquares, {0, {out}, {a, a}}) == FLHAL_OK);   // now core knows the name
  flhal_stream* ram = stream_of("ram");
  Tensor x = floats(ram, {4}), y = empty(ram, {4});
  CHECK(run_named(kSquares, {0, {y}, {x, x}}) == FLHAL_E_NOT_FOUND);
  CHECK_THAT(last_text(), Contains("there is no op \"mock.sum_of_squares\", neither in the op set nor among the vendor ops of ram"));
  CHECK(run_named("mock.no_such_op", {0, {out}, {a, a}}) == FLHAL_E_NOT_FOUND);
  CHECK_THAT(last_text(), Contains("mock.no_such_op") && Contains("vendor ops of chip_a"));
  CHECK(run_named("", {0, {out}, {a, a}}) == FLHAL_E_INVALID);
  CHECK(run_named(nullptr, {0, {out}, {a, a}}) == FLHAL_E_INVALID);
  CHECK(run_named(std::string(100000, 'x').c_str(), {0, {out}, {a, a}}) == FLHAL_E_NOT_FOUND);
}

TEST_CASE("vendor ops: what the plugin declines has no other route, and the reason says why", "[dispatch][vendor]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = empty(s, {4}, FLHAL_BOOL), out = empty(s, {4}, FLHAL_BOOL);
  Call call{0, {out}, {a, a}};
  REQUIRE(run_named(kSquares, call) == FLHAL_DECLINED);
  CHECK_THAT(flhal_last_decline(), Contains("native: the plugin declined: mock computes with float32, float64, int32 and int64 only"));
  std::string reason;
  CHECK(route_named(device_named("chip_a"), kSquares, call, &reason) == "declined");
  CHECK_THAT(reason, Contains("mock computes with"));
}

TEST_CASE("vendor ops: bounds, devices and overlaps are core's, as for every op", "[dispatch][vendor][bounds]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), other = floats(stream_of("chip_b"), {4}), out = empty(s, {4});
  CHECK(run_named(kSquares, {0, {out}, {a.view({5}, {1}), a}}) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("spans bytes [0, 20) of an allocation of 16 bytes"));
  CHECK(run_named(kSquares, {0, {out}, {a, other}}) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("chip_b"));
  Tensor one = floats(s, {1});
  CHECK(run_named(kSquares, {0, {one.view({4}, {0})}, {a, a}}) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("overlaps itself"));
  CHECK(values(one) == std::vector<float>{1});
}

TEST_CASE("native: a plan for one size and a refusal for another: the next route is taken, with the reason", "[dispatch][plans][sizes]") {
  MockScript script("max_rows=4");
  { Setting forget("log_level", "error"); }                       // ends every plan
  flhal_stream* s = stream_of("chip_a");
  auto product = [&](int64_t rows) {
    Tensor a = floats(s, {rows, 3}, 1), b = floats(s, {3, 2}, 1), out = empty(s, {rows, 2});
    Call call{FLHAL_OP_MATMUL, {out}, {a, b, absent()}};
    REQUIRE(call.run() == FLHAL_OK);
    std::vector<float> got = values(out);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < 2; ++c) {
        float want = 0;
        for (int64_t k = 0; k < 3; ++k) want += float(r * 3 + k + 1) * float(k * 2 + c + 1);
        CHECK(got[static_cast<size_t>(r * 2 + c)] == want);
      }
    std::string reason;
    std::string route = call.route(device_named("chip_a"), &reason);
    return route + " " + reason;
  };
  // In both orders: neither answer may stand for the other size.
  for (int64_t rows : {5, 4, 6, 3, 5, 4}) {
    CAPTURE(rows);
    const std::string route = product(rows);
    if (rows <= 4) CHECK(route == "native ");
    else CHECK(route == "kernel native: the plugin declined: the script takes matrices of so many rows away");
  }
  // The refusal is remembered for its size, the plan for its own.
  const uint64_t before = mock_counts().plan_creates;
  for (int64_t rows : {5, 4, 6, 3}) product(rows);
  CHECK(mock_counts().plan_creates == before);
  // Where no other route may be taken the answer says why.
  Setting native("route", "native");
  Tensor a = floats(s, {9, 3}), b = floats(s, {3, 2}), out = empty(s, {9, 2});
  CHECK(Call{FLHAL_OP_MATMUL, {out}, {a, b, absent()}}.run() == FLHAL_DECLINED);
  CHECK_THAT(flhal_last_decline(), Contains("takes matrices of so many rows away"));
  const std::string routes = report("routes");
  CHECK_THAT(routes, Contains("takes matrices of so many rows away"));
}
