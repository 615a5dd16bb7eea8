// tests/dispatch/refusals_test.cc: calls that are wrong: bounds, devices, overlaps, dtypes, shapes, attributes.
#include <catch2/catch.hpp>

#include "call.h"

using namespace flhal::test;
using Catch::Contains;

TEST_CASE("run: an operand that leaves its allocation is refused with its bounds", "[dispatch][bounds]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {5}), b = a.view({5}, {1});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {b, b}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("add: input a spans bytes [0, 20) of an allocation of 16 bytes"));

  Tensor shifted = a.view({4}, {1}, 1);
  REQUIRE(Call{FLHAL_OP_NEG, {empty(s, {4})}, {shifted}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("[4, 20)"));

  Tensor small_out = floats(s, {2});
  REQUIRE(Call{FLHAL_OP_NEG, {small_out.view({4}, {1})}, {a}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("output out"));
}

TEST_CASE("run: spans that leave 64 bits are refused, not wrapped", "[dispatch][bounds][COPY-08]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  for (int64_t stride : {int64_t(1) << 60, int64_t(1) << 62, INT64_MAX, (int64_t(1) << 40) + 1}) {
    REQUIRE(Call{FLHAL_OP_NEG, {out}, {a.view({4}, {stride})}}.run() == FLHAL_E_INVALID);
    REQUIRE(Call{FLHAL_OP_NEG, {a.view({4}, {stride})}, {out}}.run() == FLHAL_E_INVALID);
  }
  for (int64_t size : {int64_t(1) << 40, int64_t(1) << 62, INT64_MAX, int64_t(-1)}) {
    REQUIRE(Call{FLHAL_OP_NEG, {a.view({size, size}, {size, 1})}, {a.view({size, size}, {size, 1})}}.run() ==
            FLHAL_E_INVALID);
    REQUIRE(Call{FLHAL_OP_NEG, {a.view({size}, {1})}, {a.view({size}, {1})}}.run() == FLHAL_E_INVALID);
  }
  REQUIRE(Call{FLHAL_OP_NEG, {out}, {a.view({4}, {-1}, 3)}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("negative stride"));
}

TEST_CASE("run: an operand of another device is named with both devices", "[dispatch][DEV-01]") {
  flhal_stream *a = stream_of("chip_a"), *b = stream_of("chip_b");
  Tensor x = floats(a, {4}), y = floats(b, {4}), out = empty(a, {4});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {x, y}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("input b lies on device") && Contains("chip_b") && Contains("chip_a"));
}

TEST_CASE("run: host pointers and freed memory are no operands", "[dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  float host[4] = {};
  Tensor x = floats(s, {4}), out = empty(s, {4});
  Tensor wrong = x;
  wrong.address = reinterpret_cast<uint64_t>(host);
  REQUIRE(Call{FLHAL_OP_NEG, {out}, {wrong}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("no device memory"));
  wrong.memory.reset();   // the last owners let go
  Tensor freed = x;
  freed.memory.reset();
  x.memory.reset();
  REQUIRE(Call{FLHAL_OP_NEG, {out}, {freed}}.run() == FLHAL_E_INVALID);
}

TEST_CASE("VIEW-04 run: an output that overlaps itself is refused and nothing is written", "[dispatch][overlap]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4}), one = floats(s, {1}), base = floats(s, {8});
  REQUIRE(Call{FLHAL_OP_COPY, {one.view({4}, {0})}, {x}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("overlaps itself"));
  CHECK(values(one) == std::vector<float>{1});
  REQUIRE(Call{FLHAL_OP_FILL, {base.view({3, 3}, {2, 1})}, {one.view({}, {})}}.run() == FLHAL_E_INVALID);
  // Interleaved, but every element has its own place: legal.
  Tensor comb = empty(s, {8});
  REQUIRE(Call{FLHAL_OP_FILL, {comb.view({2, 3}, {3, 2})}, {one.view({}, {})}}.run() == FLHAL_OK);
}

TEST_CASE("VIEW-04 run: an output that partly overlaps an input gives the result of a copied input",
          "[dispatch][overlap]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {8});
  Tensor tail = x.view({7}, {1}, 1), head = x.view({7}, {1});
  REQUIRE(Call{FLHAL_OP_ADD, {tail}, {tail, head}}.run() == FLHAL_OK);
  CHECK(values(x) == std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15});
  // A transposed input over the same memory.
  Tensor m = floats(s, {3, 3});
  REQUIRE(Call{FLHAL_OP_COPY, {m}, {m.transposed()}}.run() == FLHAL_OK);
  CHECK(values(m) == std::vector<float>{1, 4, 7, 2, 5, 8, 3, 6, 9});
  // Exact overlap, of an op that may not work in place.
  Tensor a = floats(s, {2, 2});
  REQUIRE(Call{FLHAL_OP_MATMUL, {a}, {a, a, absent()}}.run() == FLHAL_OK);
  CHECK(values(a) == std::vector<float>{7, 10, 15, 22});
}

TEST_CASE("run: in place is exact and needs no copy", "[dispatch][overlap]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4});
  REQUIRE(Call{FLHAL_OP_ADD, {x}, {x, x}}.run() == FLHAL_OK);
  CHECK(values(x) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("run: two outputs that share memory are refused", "[dispatch][overlap]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {1, 1, 4, 4}), out = empty(s, {1, 1, 2, 2}), index = empty(s, {1, 1, 2, 2}, FLHAL_I64);
  Tensor clash = out;
  clash.dtype = FLHAL_I32;
  std::vector<int64_t> two{2, 2};
  Call call{FLHAL_OP_MAX_POOL2D, {out, clash}, {x},
            {ints(FLHAL_ATTR_MAX_POOL2D_KERNEL, two), ints(FLHAL_ATTR_MAX_POOL2D_STRIDE, two)}};
  REQUIRE(call.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("share memory"));
}

TEST_CASE("run: shapes are checked in every call, also when the plan is known", "[dispatch][shape]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {2, 3}), b = floats(s, {2, 3}), out = empty(s, {2, 3});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, b}}.run() == FLHAL_OK);
  Tensor other = floats(s, {3, 2});
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, other}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("input b [3, 2] does not broadcast to the output [2, 3]"));

  Tensor m = floats(s, {2, 3}), n = floats(s, {3, 4}), r = empty(s, {2, 4});
  REQUIRE(Call{FLHAL_OP_MATMUL, {r}, {m, n, absent()}}.run() == FLHAL_OK);
  Tensor wrong = floats(s, {4, 4});
  REQUIRE(Call{FLHAL_OP_MATMUL, {r}, {m, wrong, absent()}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("3 columns, 4 rows"));
  REQUIRE(Call{FLHAL_OP_SUM, {empty(s, {2, 2})}, {m}}.run() == FLHAL_E_INVALID);
}

TEST_CASE("run: malformed calls are refused with what is needed", "[dispatch]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor a = floats(s, {4}), out = empty(s, {4});
  REQUIRE(Call{0x7ffu, {out}, {a}}.run() == FLHAL_E_INVALID);
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("1 outputs and 1 inputs are given; 1 and 2 are needed"));
  REQUIRE(Call{FLHAL_OP_ADD, {out}, {a, absent()}}.run() == FLHAL_E_INVALID);
  REQUIRE(Call{FLHAL_OP_GELU, {out}, {a}, {integer(FLHAL_ATTR_ADD_ALPHA, 1)}}.run() == FLHAL_E_INVALID);
  REQUIRE(Call{FLHAL_OP_SOFTMAX, {out}, {a}, {number(FLHAL_ATTR_SOFTMAX_DIM, 0)}}.run() == FLHAL_E_INVALID);
  REQUIRE(Call{FLHAL_OP_SOFTMAX, {out}, {a}, {integer(FLHAL_ATTR_SOFTMAX_DIM, 1)}}.run() == FLHAL_E_INVALID);
  REQUIRE(Call{FLHAL_OP_UNIFORM, {out}, {}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("attribute philox is needed"));
  Tensor odd = a.view({2}, {1});
  odd.address += 2;
  REQUIRE(Call{FLHAL_OP_NEG, {empty(s, {2})}, {odd}}.run() == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("not a multiple of its 4 bytes"));
  REQUIRE(flhal_op_run(s, nullptr) == FLHAL_E_INVALID);
  flhal_status status = Call{FLHAL_OP_NEG, {out}, {a}}.with([&](const flhal_op_call* c) {
    flhal_op_call copy = *c;
    copy.struct_size = 8;
    return flhal_op_run(s, &copy);
  });
  REQUIRE(status == FLHAL_E_INVALID);
  status = Call{FLHAL_OP_NEG, {out}, {a}}.with([&](const flhal_op_call* c) {
    struct {
      flhal_op_call call;
      uint64_t later;
    } longer{*c, 1};
    longer.call.struct_size = sizeof longer;
    return flhal_op_run(s, &longer.call);
  });
  REQUIRE(status == FLHAL_E_ABI);
}

TEST_CASE("run: calls without elements launch nothing; empty reductions give the identity", "[dispatch][empty]") {
  flhal_stream* s = stream_of("chip_a");
  Tensor none = empty(s, {0, 3});
  REQUIRE(Call{FLHAL_OP_ADD, {none}, {none, none}}.run() == FLHAL_OK);
  Tensor sum = floats(s, {1, 3}, 7);
  REQUIRE(Call{FLHAL_OP_SUM, {sum}, {none}}.run() == FLHAL_OK);
  CHECK(values(sum) == std::vector<float>{0, 0, 0});
  Tensor product = floats(s, {1, 3}, 7);
  REQUIRE(Call{FLHAL_OP_PROD, {product}, {none}}.run() == FLHAL_OK);
  CHECK(values(product) == std::vector<float>{1, 1, 1});
  Tensor mean = floats(s, {1, 3}, 7);
  REQUIRE(Call{FLHAL_OP_MEAN, {mean}, {none}}.run() == FLHAL_OK);
  for (float v : values(mean)) CHECK(v != v);
  REQUIRE(Call{FLHAL_OP_AMAX, {sum}, {none}}.run() == FLHAL_E_INVALID);
  Tensor product2 = floats(s, {2, 2}, 7);
  REQUIRE(Call{FLHAL_OP_MATMUL, {product2}, {empty(s, {2, 0}), empty(s, {0, 2}), absent()}}.run() == FLHAL_OK);
  CHECK(values(product2) == std::vector<float>{0, 0, 0, 0});
}
