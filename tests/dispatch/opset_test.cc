// tests/dispatch/opset_test.cc: the tables themselves, and flhal_op_infer.
#include <catch2/catch.hpp>

#include <set>

#include "call.h"
#include "dispatch/opset/opset.h"

using namespace flhal::test;

namespace {

Tensor shape(std::vector<int64_t> sizes, flhal_dtype dtype = FLHAL_F32) {
  Tensor t;
  t.strides = dense_strides(sizes);
  t.sizes = std::move(sizes);
  t.dtype = dtype;
  return t;
}

struct Inferred {
  std::vector<int64_t> sizes, strides;
  flhal_dtype dtype;
};
std::vector<Inferred> infer(const Call& call) {
  std::vector<flhal_tensor> outs(call.outputs.size());
  std::vector<std::vector<int64_t>> sizes(outs.size(), std::vector<int64_t>(16)), strides = sizes;
  for (size_t i = 0; i < outs.size(); ++i) {
    outs[i].sizes = sizes[i].data();
    outs[i].strides = strides[i].data();
  }
  if (call.with([&](const flhal_op_call* c) { return flhal_op_infer(c, outs.data()); }) != FLHAL_OK) return {};
  std::vector<Inferred> got;
  for (size_t i = 0; i < outs.size(); ++i) {
    sizes[i].resize(outs[i].rank);
    strides[i].resize(outs[i].rank);
    got.push_back({sizes[i], strides[i], outs[i].dtype});
  }
  return got;
}

}  // namespace

TEST_CASE("opset: every row is found by number and by name, and its operands fit a call", "[dispatch][opset]") {
  using namespace flhal::opset;
  std::set<uint32_t> keys;
  for (uint32_t f = 0; f < kFamilies; ++f)
    for (const OpDef& d : family_rows(f)) {
      CAPTURE(d.name);
      CHECK(row_of(d.number) == &d);
      CHECK(find(d.name) == &d);
      CHECK(flhal_op_find(d.name) == d.number);
      CHECK(d.n_outputs >= 1);
      CHECK(uint32_t(d.n_outputs) + d.n_inputs <= kMaxOperands);
      for (uint32_t i = 0; i < d.n_attrs; ++i) CHECK(keys.insert(attr_key(d.number, d.attrs[i].number)).second);
    }
  CHECK(flhal_op_find("no_such_op") == 0);
  CHECK(flhal_op_find("layer_norm") == FLHAL_OP_LAYER_NORM);
}

TEST_CASE("infer: sizes, strides and dtypes follow from the inputs", "[dispatch][infer]") {
  Tensor out;
  auto got = infer({FLHAL_OP_ADD, {out}, {shape({2, 1, 4}), shape({3, 1})}});
  REQUIRE(got.size() == 1);
  CHECK(got[0].sizes == std::vector<int64_t>{2, 3, 4});
  CHECK(got[0].strides == std::vector<int64_t>{12, 4, 1});
  CHECK(infer({FLHAL_OP_LT, {out}, {shape({2}), shape({2})}})[0].dtype == FLHAL_BOOL);
  CHECK(infer({FLHAL_OP_SUM, {out}, {shape({2, 5}, FLHAL_I32)}})[0].dtype == FLHAL_I64);
  CHECK(infer({FLHAL_OP_SUM, {out}, {shape({2, 5})}})[0].sizes == std::vector<int64_t>{1, 1});
  CHECK(infer({FLHAL_OP_MATMUL, {out}, {shape({5, 1, 2, 3}), shape({4, 3, 7}), absent()}})[0].sizes ==
        std::vector<int64_t>{5, 4, 2, 7});
  CHECK(infer({FLHAL_OP_INDEX_SELECT, {out}, {shape({10, 8}), shape({2, 3}, FLHAL_I64)}})[0].sizes ==
        std::vector<int64_t>{2, 3, 8});
  CHECK(infer({FLHAL_OP_CAT, {out}, {shape({2, 8}), shape({3, 8}), shape({0, 8})}})[0].sizes ==
        std::vector<int64_t>{5, 8});
  auto norm = infer({FLHAL_OP_LAYER_NORM, {out, out, out}, {shape({2, 3, 4}, FLHAL_F16), absent(), absent()}});
  REQUIRE(norm.size() == 3);
  CHECK(norm[1].sizes == std::vector<int64_t>{2, 3, 1});
  CHECK(norm[1].dtype == FLHAL_F32);
  std::vector<int64_t> two{2, 2}, one{1, 1}, three{3, 3};
  auto conv = infer({FLHAL_OP_CONV2D, {out}, {shape({1, 4, 9, 9}), shape({6, 2, 3, 3}), absent()},
                     {ints(FLHAL_ATTR_CONV2D_STRIDE, two), ints(FLHAL_ATTR_CONV2D_PADDING, one),
                      integer(FLHAL_ATTR_CONV2D_GROUPS, 2)}});
  REQUIRE(conv.size() == 1);
  CHECK(conv[0].sizes == std::vector<int64_t>{1, 6, 5, 5});
  auto pool = infer({FLHAL_OP_MAX_POOL2D, {out, out}, {shape({1, 4, 6, 6})},
                     {ints(FLHAL_ATTR_MAX_POOL2D_KERNEL, three), ints(FLHAL_ATTR_MAX_POOL2D_STRIDE, two),
                      integer(FLHAL_ATTR_MAX_POOL2D_CEIL, 1)}});
  REQUIRE(pool.size() == 2);
  CHECK(pool[0].sizes == std::vector<int64_t>{1, 4, 3, 3});
  CHECK(pool[1].dtype == FLHAL_I64);
}

TEST_CASE("infer: what does not fit is refused with sizes", "[dispatch][infer]") {
  Tensor out;
  CHECK(infer({FLHAL_OP_ADD, {out}, {shape({2, 3}), shape({4})}}).empty());
  CHECK_THAT(last_text(), Catch::Contains("[4] does not broadcast"));
  CHECK(infer({FLHAL_OP_MATMUL, {out}, {shape({2, 3}), shape({4, 5}), absent()}}).empty());
  CHECK(infer({FLHAL_OP_SCATTER, {out}, {shape({2}, FLHAL_I64), shape({2})}}).empty());
  CHECK_THAT(last_text(), Catch::Contains("the caller chooses them"));
}
