// tests/dispatch/routes_test.cc: the same call by every route gives the same numbers; composites against formulas.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>

#include "call.h"

using namespace flhal::test;

namespace {

std::vector<float> by_route(const char* route, const Call& call, flhal_status* status = nullptr) {
  Setting forced("route", route);
  flhal_status s = call.run();
  if (status) *status = s;
  return s == FLHAL_OK ? values(call.outputs[0]) : std::vector<float>{};
}

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5).margin(1e-6));
}

}  // namespace

TEST_CASE("routes: add is the same natively, by kernel and on the host", "[dispatch][routes]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {3, 4}), b = floats(s, {4}, 10), out = empty(s, {3, 4});
  Call call{FLHAL_OP_ADD, {out}, {a, b}};
  auto native = by_route("native", call);
  REQUIRE(native.size() == 12);
  CHECK(native[5] == 6 + 11);
  check_close(by_route("kernel", call), native);
  check_close(by_route("host", call), native);
  CHECK(Call{FLHAL_OP_ADD, {out}, {a, b}}.route(device_named("chip_a")) == "native");
}

TEST_CASE("routes: the host route keeps the bytes between the elements of a view", "[dispatch][routes]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor wide = floats(s, {4, 4}, 100), x = floats(s, {4, 2});
  Tensor window = wide.view({4, 2}, {4, 1}, 1);
  Setting forced("route", "host");
  REQUIRE(Call{FLHAL_OP_COPY, {window}, {x}}.run() == FLHAL_OK);
  CHECK(values(wide) == std::vector<float>{100, 1, 2, 103, 104, 3, 4, 107, 108, 5, 6, 111, 112, 7, 8, 115});
  // In place through the host: one view of the bytes, not two.
  REQUIRE(Call{FLHAL_OP_ADD, {window}, {window, window}}.run() == FLHAL_OK);
  CHECK(values(wide) == std::vector<float>{100, 2, 4, 103, 104, 6, 8, 107, 108, 10, 12, 111, 112, 14, 16, 115});
}

TEST_CASE("routes: layer_norm by composite, kernel and host agree", "[dispatch][routes][composite]") {
  flhal_stream* s = stream_of("chip_a");
  std::vector<float> data(24);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::sin(static_cast<float>(i) * 1.7f) * 3;
  Tensor x = make(s, {2, 3, 4}, data), w = floats(s, {4}, 0.5f, 0.25f), b = floats(s, {4}, -1, 0.5f);
  Tensor out = empty(s, {2, 3, 4}), mean = empty(s, {2, 3, 1}), rstd = empty(s, {2, 3, 1});
  std::vector<float> want(24), want_mean(6);
  for (size_t r = 0; r < 6; ++r) {
    double m = 0, v = 0;
    for (size_t i = 0; i < 4; ++i) m += data[r * 4 + i] / 4.0;
    for (size_t i = 0; i < 4; ++i) v += (data[r * 4 + i] - m) * (data[r * 4 + i] - m) / 4.0;
    for (size_t i = 0; i < 4; ++i)
      want[r * 4 + i] = static_cast<float>((data[r * 4 + i] - m) / std::sqrt(v + 1e-5) * (0.5 + 0.25 * double(i)) - 1 +
                                           0.5 * double(i));
    want_mean[r] = static_cast<float>(m);
  }
  for (const Tensor& weight : {w, absent()})
    for (const Tensor& bias : {b, absent()}) {
      Call call{FLHAL_OP_LAYER_NORM, {out, mean, rstd}, {x, weight, bias}};
      auto composite = by_route("composite", call);
      if (weight.flags == 0 && bias.flags == 0) check_close(composite, want);
      check_close(values(mean), want_mean);
      check_close(by_route("host", call), composite);
      check_close(by_route("auto", call), composite);
    }
  Call call{FLHAL_OP_LAYER_NORM, {out, absent(), absent()}, {x, w, b}};
  check_close(by_route("composite", call), want);
}

TEST_CASE("routes: every composite agrees with the kernel it stands for", "[dispatch][routes][composite]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {3, 4}, 0.25f, 0.25f), y = floats(s, {3, 4}, 2, -0.125f), z = floats(s, {4}, 1, 0.5f);
  Tensor out = empty(s, {3, 4}), row = empty(s, {3, 1});
  Tensor low = floats(s, {}, 0.75f), high = floats(s, {}, 2.25f);
  Tensor mask = empty(s, {3, 4}, FLHAL_BOOL);
  REQUIRE(Call{FLHAL_OP_GT, {mask}, {x, low}}.run() == FLHAL_OK);
  std::vector<Call> calls = {
      {FLHAL_OP_SOFTMAX, {out}, {x}},
      {FLHAL_OP_SOFTMAX, {out}, {x}, {integer(FLHAL_ATTR_SOFTMAX_DIM, 0)}},
      {FLHAL_OP_LOG_SOFTMAX, {out}, {x}},
      {FLHAL_OP_SOFTMAX_BACKWARD, {out}, {x, y}},
      {FLHAL_OP_LOG_SOFTMAX_BACKWARD, {out}, {x, y}},
      {FLHAL_OP_SQUARE, {out}, {x}},
      {FLHAL_OP_RECIPROCAL, {out}, {x}},
      {FLHAL_OP_RSQRT, {out}, {x}},
      {FLHAL_OP_SILU, {out}, {x}},
      {FLHAL_OP_RELU, {out}, {x}},
      {FLHAL_OP_ADDCMUL, {out}, {x, y, z}, {number(FLHAL_ATTR_ADDCMUL_VALUE, 0.5)}},
      {FLHAL_OP_ADDCDIV, {out}, {x, y, z}, {number(FLHAL_ATTR_ADDCDIV_VALUE, -0.5)}},
      {FLHAL_OP_LERP, {out}, {x, y, z}},
      {FLHAL_OP_CLAMP, {out}, {x, low, high}},
      {FLHAL_OP_CLAMP, {out}, {x, low, absent()}},
      {FLHAL_OP_CLAMP, {out}, {x, absent(), high}},
      {FLHAL_OP_MASKED_FILL, {out}, {x, mask, low}},
      {FLHAL_OP_MEAN, {row}, {x}},
      {FLHAL_OP_NORM2, {row}, {x}},
      {FLHAL_OP_VAR, {row}, {x}},
  };
  for (const Call& call : calls) {
    CAPTURE(call.op);
    flhal_status composite_status, kernel_status;
    auto composite = by_route("composite", call, &composite_status);
    auto kernel = by_route("kernel", call, &kernel_status);
    INFO(flhal_last_decline());
    CHECK(composite_status == FLHAL_OK);
    if (kernel_status == FLHAL_OK) check_close(composite, kernel);
    else WARN("no kernel for op " << call.op << ": " << flhal_last_decline());
  }
}

TEST_CASE("routes: a host scalar is read before the call returns", "[dispatch][routes]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4}), out = empty(s, {4});
  for (const char* route : {"native", "kernel", "host"}) {
    Setting forced("route", route);
    double value = 3;
    REQUIRE(Call{FLHAL_OP_MUL, {out}, {x, scalar(&value)}}.run() == FLHAL_OK);
    value = 1000;
    CHECK(values(out) == std::vector<float>{3, 6, 9, 12});
  }
}

TEST_CASE("routes: cat of many inputs", "[dispatch][routes]") {
  flhal_stream* s = stream_of("chip_a");
  Call call{FLHAL_OP_CAT, {empty(s, {40, 2})}, {}};
  for (int i = 0; i < 20; ++i) call.inputs.push_back(floats(s, {2, 2}, static_cast<float>(4 * i)));
  flhal_status status = call.run();
  INFO(flhal_last_decline());
  REQUIRE(status == FLHAL_OK);
  auto got = values(call.outputs[0]);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<float>(i));
}

TEST_CASE("op_route: tells without addresses and without running", "[dispatch][routes]") {
  Tensor x;
  x.sizes = {2, 3};
  x.strides = {3, 1};
  std::string reason;
  Call add{FLHAL_OP_ADD, {x}, {x, x}};
  CHECK(add.route(device_named("chip_a"), &reason) == "native");
  CHECK(reason == "");
  Call relu{FLHAL_OP_RELU, {x}, {x}};
  CHECK(relu.route(device_named("chip_a"), &reason) == "kernel");
}
