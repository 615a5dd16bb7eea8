// tests/host_plugin/matmul_test.cc: native matmul against double loops, in many layouts.
#include <omp.h>

#include <cmath>
#include <thread>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

using Dims = std::vector<int64_t>;

// out = alpha * a @ b + beta * c in double precision, index by index. An independent loop: no folding, no merging.
void check_product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* c, double alpha, double beta, double rtol) {
  const Dims& s = out.sizes();
  const size_t r = s.size();
  const int64_t m = s[r - 2], n = s[r - 1], k = a.sizes().back();
  auto index = [&](const Tensor& t, const Dims& at) {   // of the element that out's index `at` (last two given) broadcasts to
    int64_t i = 0;
    const size_t tr = t.sizes().size();
    for (size_t d = 0; d < tr; ++d) {
      const int64_t v = t.sizes()[d] == 1 ? 0 : at[at.size() - tr + d];
      i = i * t.sizes()[d] + v;
    }
    return i;
  };
  double worst = 0;
  for (int64_t e = 0; e < out.count(); ++e) {
    Dims at(r);
    int64_t rest = e;
    for (size_t d = r; d-- > 0; rest /= s[d]) at[d] = rest % s[d];
    double sum = 0, magnitude = 0;
    for (int64_t l = 0; l < k; ++l) {
      Dims ia = at, ib = at;
      ia[r - 1] = l, ib[r - 2] = l;
      const double product = a.at(index(a, ia)) * b.at(index(b, ib));
      sum += product, magnitude += std::fabs(product);
    }
    double want = alpha * sum;
    magnitude *= std::fabs(alpha);
    if (c && beta != 0) want += beta * c->at(index(*c, at)), magnitude += std::fabs(beta * c->at(index(*c, at)));
    worst = std::max(worst, std::fabs(out.at(e) - want) / (magnitude + 1e-30));
  }
  (void)m, (void)n;
  CHECK(worst < rtol);
}

struct Case {
  const char* what;
  Dims a, a_strides, b, b_strides, out, out_strides;
};

const Case kCases[] = {
    {"dense", {9, 17}, {}, {17, 33}, {}, {9, 33}, {}},
    {"b transposed", {9, 17}, {}, {17, 33}, {1, 17}, {9, 33}, {}},
    {"a transposed", {9, 17}, {1, 9}, {17, 33}, {}, {9, 33}, {}},
    {"both transposed", {9, 17}, {1, 9}, {17, 33}, {1, 17}, {9, 33}, {}},
    {"rows with gaps", {9, 17}, {20, 1}, {17, 33}, {40, 1}, {9, 33}, {50, 1}},
    {"result transposed", {9, 17}, {}, {17, 33}, {}, {9, 33}, {1, 9}},
    {"result transposed with gaps", {9, 17}, {}, {17, 33}, {1, 19}, {9, 33}, {1, 12}},
    {"one row", {1, 64}, {}, {64, 96}, {}, {1, 96}, {}},
    {"one row, dense columns", {1, 67}, {}, {67, 50}, {1, 67}, {1, 50}, {}},
    {"one row, spaced columns, one thread per part", {1, 700}, {}, {700, 403}, {1, 709}, {1, 403}, {}},
    {"one column", {96, 64}, {}, {64, 1}, {}, {96, 1}, {}},
    {"one column from a strided vector", {96, 64}, {}, {64, 1}, {3, 1}, {96, 1}, {}},
    {"one row with a step", {1, 64}, {999, 2}, {64, 96}, {}, {1, 96}, {}},
    {"k of 1", {80, 1}, {}, {1, 60}, {}, {80, 60}, {}},
    {"batch", {5, 9, 17}, {}, {5, 17, 33}, {}, {5, 9, 33}, {}},
    {"batch, b shared: folds", {5, 9, 17}, {}, {17, 33}, {}, {5, 9, 33}, {}},
    {"batch, b shared with size 1", {5, 9, 17}, {}, {1, 17, 33}, {}, {5, 9, 33}, {}},
    {"batch of one row each, b shared", {15, 1, 17}, {}, {17, 33}, {}, {15, 1, 33}, {}},
    {"batch, a shared", {9, 17}, {}, {5, 17, 33}, {}, {5, 9, 33}, {}},
    {"batch by stride 0", {5, 9, 17}, {0, 17, 1}, {5, 17, 33}, {}, {5, 9, 33}, {}},
    {"two batch dims broadcast crosswise", {2, 1, 9, 17}, {}, {3, 17, 33}, {}, {2, 3, 9, 33}, {}},
    {"heads: permuted", {2, 3, 16, 8}, {384, 8, 24, 1}, {2, 3, 8, 16}, {384, 8, 1, 24}, {2, 3, 16, 16}, {}},
    {"heads back into place", {2, 3, 16, 16}, {}, {2, 3, 16, 8}, {384, 8, 24, 1}, {2, 3, 16, 8}, {384, 8, 24, 1}},
    {"five dimensions", {2, 1, 2, 14, 6}, {}, {3, 1, 6, 15}, {}, {2, 3, 2, 14, 15}, {}},
};

}  // namespace

TEST_CASE("host matmul: every layout gives the product, float32", "[host_plugin][matmul]") {
  LoadedPlugin p;
  for (const Case& x : kCases) {
    DYNAMIC_SECTION(x.what) {
      Tensor a(FLHAL_F32, x.a, x.a_strides), b(FLHAL_F32, x.b, x.b_strides), out(FLHAL_F32, x.out, x.out_strides);
      Tensor none = Tensor::absent();
      a.fill_random(1), b.fill_random(2);
      RunResult r = run_op(p, FLHAL_OP_MATMUL, "matmul", {&out, &a, &b, &none}, 1, {}, 2);
      INFO(r.reason);
      REQUIRE(r.created == FLHAL_OK);
      REQUIRE(r.ran == FLHAL_OK);
      CHECK(r.info.depends_on == (FLHAL_DEPENDS_SIZES | FLHAL_DEPENDS_STRIDES));
      check_product(out, a, b, nullptr, 1, 0, 3e-7);
    }
  }
}

TEST_CASE("host matmul: c as row, column, matrix and scalar, with alpha and beta", "[host_plugin][matmul]") {
  LoadedPlugin p;
  const Dims c_sizes = GENERATE(Dims{33}, Dims{1, 33}, Dims{9, 1}, Dims{9, 33}, Dims{5, 1, 33}, Dims{5, 9, 33}, Dims{1, 1, 1});
  const double alpha = GENERATE(1.0, 0.5), beta = GENERATE(1.0, -2.0, 0.0);
  const bool transposed_result = GENERATE(false, true);
  const flhal_dtype dtype = GENERATE(FLHAL_F32, FLHAL_BF16);
  Tensor a(dtype, {5, 9, 17}), b(dtype, {17, 33}), c(dtype, c_sizes);
  Tensor out(dtype, {5, 9, 33}, transposed_result ? Dims{297, 1, 9} : Dims{});
  a.fill_random(1), b.fill_random(2), c.fill_random(3);
  if (beta == 0) for (int64_t i = 0; i < c.count(); ++i) c.set(i, NAN);   // must not be read
  Attrs attrs;
  if (alpha != 1) attrs.number(FLHAL_ATTR_MATMUL_ALPHA, alpha);
  if (beta != 1) attrs.number(FLHAL_ATTR_MATMUL_BETA, beta);
  RunResult r = run_op(p, FLHAL_OP_MATMUL, "matmul", {&out, &a, &b, &c}, 1, attrs);
  INFO(r.reason << " c rank " << c_sizes.size() << " alpha " << alpha << " beta " << beta << " dtype " << dtype);
  if (dtype == FLHAL_BF16 && r.created == FLHAL_DECLINED) return;   // a processor without bfloat16 products
  REQUIRE(r.created == FLHAL_OK);
  REQUIRE(r.ran == FLHAL_OK);
  check_product(out, a, b, &c, alpha, beta, dtype == FLHAL_F32 ? 3e-7 : 5e-3);
}

TEST_CASE("host matmul: alpha and beta may change between runs of one plan", "[host_plugin][matmul]") {
  // Goal: dynamic attributes are read at run time. Method: plan with 1 and 1, run with others.
  LoadedPlugin p;
  Tensor a(FLHAL_F32, {18, 16}), b(FLHAL_F32, {16, 24}), c(FLHAL_F32, {24}), out(FLHAL_F32, {18, 24});
  a.fill_random(1), b.fill_random(2), c.fill_random(3);
  flhal_tensor_v1 views[4] = {out.view(), a.view(), b.view(), c.view()};
  flhal_op_call_v1 call{};
  call.struct_size = sizeof call, call.op = FLHAL_OP_MATMUL, call.name = "matmul", call.tensors = views;
  call.tensor_stride = sizeof views[0], call.n_outputs = 1, call.n_inputs = 3, call.compute_dtype = FLHAL_F32;
  call.attr_stride = sizeof(flhal_attr_v1);
  flhal_plan_info_v1 info{};
  info.struct_size = sizeof info;
  flhal_p_plan* plan = nullptr;
  REQUIRE(p.ops->plan_create(p.device, &call, &info, &plan) == FLHAL_OK);
  for (double alpha : {1.0, 0.25}) {
    for (double beta : {1.0, 3.0, 0.0}) {
      Attrs attrs;
      attrs.number(FLHAL_ATTR_MATMUL_ALPHA, alpha).number(FLHAL_ATTR_MATMUL_BETA, beta);
      call.attrs = attrs.list.data(), call.n_attrs = 2;
      std::vector<unsigned char> workspace(info.workspace_bytes + 64);
      flhal_p_place place{nullptr, 0, workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64};
      REQUIRE(p.ops->plan_run(plan, nullptr, &call, info.workspace_bytes ? &place : nullptr) == FLHAL_OK);
      check_product(out, a, b, &c, alpha, beta, 3e-7);
    }
  }
  p.ops->plan_destroy(plan);
}

TEST_CASE("host matmul: what oneDNN cannot take is declined with a reason", "[host_plugin][matmul]") {
  LoadedPlugin p;
  Tensor none = Tensor::absent();
  auto reason = [&](flhal_dtype t, Dims a_s, Dims a_st, Dims b_s, Dims b_st, Dims o_s, Dims o_st) {
    Tensor a(t, a_s, a_st), b(t, b_s, b_st), out(t, o_s, o_st);
    RunResult r = run_op(p, FLHAL_OP_MATMUL, "matmul", {&out, &a, &b, &none}, 1);
    CHECK(r.created == FLHAL_DECLINED);
    return r.reason;
  };
  CHECK(reason(FLHAL_F64, {4, 4}, {}, {4, 4}, {}, {4, 4}, {}) == "native matmul takes float32 and bfloat16");
  CHECK(reason(FLHAL_F32, {4, 4}, {8, 2}, {4, 4}, {}, {4, 4}, {}) ==
        "a matrix of a matmul has neither dense rows nor dense columns, or overlaps itself");
  CHECK(reason(FLHAL_F32, {4, 4}, {}, {4, 4}, {0, 1}, {4, 4}, {}) ==
        "a matrix of a matmul has neither dense rows nor dense columns, or overlaps itself");
  CHECK(reason(FLHAL_F32, {4, 4}, {}, {4, 4}, {}, {4, 4}, {9, 2}) ==
        "the result of a matmul has neither dense rows nor dense columns");
  CHECK(reason(FLHAL_F32, {16, 16}, {}, {16, 16}, {}, {16, 16}, {}) == "so small a matmul is faster as a portable kernel");
  CHECK(reason(FLHAL_F32, {4, 0}, {}, {0, 4}, {}, {4, 4}, {}) == "an empty matmul");
}

TEST_CASE("host matmul: float32 stays float32 whatever the environment says", "[host_plugin][matmul]") {
  // 1 + 2^-12 needs more bits than bfloat16 or tf32 have; the product by 1 must keep them.
  LoadedPlugin p;
  Tensor a(FLHAL_F32, {64, 64}), b(FLHAL_F32, {64, 64}), out(FLHAL_F32, {64, 64}), none = Tensor::absent();
  for (int64_t i = 0; i < 64 * 64; ++i) a.set(i, 1.0 + std::ldexp(1.0, -20)), b.set(i, i / 64 == i % 64);
  REQUIRE(run_op(p, FLHAL_OP_MATMUL, "matmul", {&out, &a, &b, &none}, 1).ran == FLHAL_OK);
  for (int64_t i = 0; i < out.count(); ++i) REQUIRE(out.at(i) == 1.0 + std::ldexp(1.0, -20));
}

TEST_CASE("host matmul: one plan serves threads at once and survives a change of their number", "[host_plugin][matmul]") {
  LoadedPlugin p;
  Tensor a(FLHAL_F32, {128, 96}), b(FLHAL_F32, {96, 160}), none = Tensor::absent();
  a.fill_random(1), b.fill_random(2);
  std::vector<Tensor> outs(4, Tensor(FLHAL_F32, {128, 160}));
  flhal_tensor_v1 views[4] = {outs[0].view(), a.view(), b.view(), none.view()};
  flhal_op_call_v1 call{};
  call.struct_size = sizeof call, call.op = FLHAL_OP_MATMUL, call.name = "matmul", call.tensors = views;
  call.tensor_stride = sizeof views[0], call.n_outputs = 1, call.n_inputs = 3, call.compute_dtype = FLHAL_F32;
  flhal_plan_info_v1 info{};
  info.struct_size = sizeof info;
  flhal_p_plan* plan = nullptr;
  REQUIRE(p.ops->plan_create(p.device, &call, &info, &plan) == FLHAL_OK);
  auto work = [&](Tensor& out, int set_threads, int runs) {
    if (set_threads) omp_set_num_threads(set_threads);
    std::vector<unsigned char> workspace(info.workspace_bytes + 64);
    flhal_p_place place{nullptr, 0, workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64};
    flhal_tensor_v1 own[4] = {out.view(), views[1], views[2], views[3]};
    flhal_op_call_v1 mine = call;
    mine.tensors = own;
    for (int i = 0; i < runs; ++i) p.ops->plan_run(plan, nullptr, &mine, info.workspace_bytes ? &place : nullptr);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, std::ref(outs[t]), t % 3, 30);
  for (std::thread& t : threads) t.join();
  for (Tensor& out : outs) check_product(out, a, b, nullptr, 1, 0, 3e-7);

  // Inside a parallel region the plan runs alone in its thread.
  std::vector<Tensor> nested(2, Tensor(FLHAL_F32, {128, 160}));
#pragma omp parallel num_threads(2)
  work(nested[omp_get_thread_num()], 0, 5);
  for (Tensor& out : nested) check_product(out, a, b, nullptr, 1, 0, 3e-7);
  p.ops->plan_destroy(plan);
}
