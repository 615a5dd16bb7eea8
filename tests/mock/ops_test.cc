// tests/mock/ops_test.cc: the native add, mul and matmul of the mock.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "mock/direct_mock.h"

using namespace flhal::test;

namespace {

struct Matrix {
  std::vector<int64_t> sizes, strides;
  flhal_tensor_v1 tensor(const flhal_p_slab_v1& slab, uint64_t offset) const {
    flhal_tensor_v1 t{};
    t.memory = slab.memory;
    t.offset = offset;
    t.address = slab.address + offset;
    t.sizes = sizes.data();
    t.strides = strides.data();
    t.rank = static_cast<uint16_t>(sizes.size());
    t.dtype = FLHAL_F32;
    return t;
  }
};

flhal_op_call_v1 call_of(const char* name, const flhal_tensor_v1* tensors, uint32_t inputs, flhal_dtype compute = FLHAL_F32) {
  flhal_op_call_v1 c{};
  c.struct_size = sizeof c;
  c.struct_type = FLHAL_ST_OP_CALL;
  c.name = name;
  c.tensors = tensors;
  c.tensor_stride = sizeof(flhal_tensor_v1);
  c.n_outputs = 1;
  c.n_inputs = inputs;
  c.compute_dtype = compute;
  return c;
}

flhal_status run(const DirectMock& mock, const flhal_op_call_v1& call, const flhal_p_slab_v1& workspace, const char** reason) {
  flhal_plan_info_v1 info{};
  info.struct_size = sizeof info;
  flhal_p_plan* plan = nullptr;
  flhal_status s = mock.ops().plan_create(mock.chip(0), &call, &info, &plan);
  *reason = info.reason ? info.reason : "";
  if (s != FLHAL_OK) return s;
  REQUIRE(info.workspace_bytes <= workspace.bytes);
  flhal_p_place place = on(workspace);
  s = mock.ops().plan_run(plan, nullptr, &call, info.workspace_bytes ? &place : nullptr);
  mock.ops().plan_destroy(plan);
  return s;
}

}  // namespace

TEST_CASE("mock: add broadcasts a row and a host scalar", "[mock][ops]") {
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(4096), work = mock.slab(4096);
  auto* x = static_cast<float*>(mock_control().inside(slab.address));
  for (int i = 0; i < 6; ++i) x[i] = static_cast<float>(i);
  for (int i = 0; i < 3; ++i) x[16 + i] = static_cast<float>(10 * i);
  Matrix m{{2, 3}, {3, 1}}, row{{3}, {1}}, out{{2, 3}, {1, 2}};
  const char* reason;
  flhal_tensor_v1 t[3] = {out.tensor(slab, 256), m.tensor(slab, 0), row.tensor(slab, 64)};
  REQUIRE(run(mock, call_of("add", t, 2), work, &reason) == FLHAL_OK);
  const float* y = x + 64;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(y[j * 2 + i] == static_cast<float>(i * 3 + j + 10 * j));

  float two = 2;
  t[2] = {};
  t[2].address = reinterpret_cast<uint64_t>(&two);
  t[2].dtype = FLHAL_F32;
  t[2].flags = FLHAL_TENSOR_HOST_SCALAR;
  REQUIRE(run(mock, call_of("mul", t, 2), work, &reason) == FLHAL_OK);
  CHECK(y[5] == 10);
  mock.table().memory_free(mock.chip(0), slab.memory);
  mock.table().memory_free(mock.chip(0), work.memory);
}

TEST_CASE("mock: matmul takes a batch against one matrix, in workspace", "[mock][ops]") {
  DirectMock mock;
  flhal_p_slab_v1 slab = mock.slab(4096), work = mock.slab(4096);
  auto* x = static_cast<float*>(mock_control().inside(slab.address));
  for (int i = 0; i < 12; ++i) x[i] = static_cast<float>(i);        // 2 x (2x3)
  for (int i = 0; i < 6; ++i) x[64 + i] = static_cast<float>(i + 1);   // 3x2
  Matrix a{{2, 2, 3}, {6, 3, 1}}, b{{3, 2}, {2, 1}}, out{{2, 2, 2}, {4, 2, 1}};
  flhal_tensor_v1 t[3] = {out.tensor(slab, 512), a.tensor(slab, 0), b.tensor(slab, 256)};
  const char* reason;
  REQUIRE(run(mock, call_of("matmul", t, 2), work, &reason) == FLHAL_OK);
  const float* y = x + 128;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        float want = 0;
        for (int k = 0; k < 3; ++k) want += x[n * 6 + i * 3 + k] * x[64 + k * 2 + j];
        CHECK(y[n * 4 + i * 2 + j] == want);
      }
  mock.table().memory_free(mock.chip(0), slab.memory);
  mock.table().memory_free(mock.chip(0), work.memory);
}

TEST_CASE("mock: what it cannot do declines with a reason", "[mock][ops]") {
  DirectMock mock("no_op=mul");
  flhal_p_slab_v1 slab = mock.slab(4096);
  Matrix m{{2, 3}, {3, 1}};
  flhal_tensor_v1 t[3] = {m.tensor(slab, 256), m.tensor(slab, 0), m.tensor(slab, 64)};
  const char* reason;
  CHECK(run(mock, call_of("relu", t, 1), slab, &reason) == FLHAL_DECLINED);
  CHECK(std::string(reason) == "mock has add, mul and matmul only");
  CHECK(run(mock, call_of("mul", t, 2), slab, &reason) == FLHAL_DECLINED);
  CHECK(std::string(reason) == "the script takes this op away");
  t[1].dtype = FLHAL_F16;
  CHECK(run(mock, call_of("add", t, 2), slab, &reason) == FLHAL_DECLINED);
  CHECK(std::string(reason) == "mock computes with float32, float64, int32 and int64 only");
  mock.table().memory_free(mock.chip(0), slab.memory);
}
