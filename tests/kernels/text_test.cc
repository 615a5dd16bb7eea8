// tests/kernels/text_test.cc: which text a call gets: classes, refusals, both schedules. Compiles nothing.
#include <set>

#include "run_plan.h"

namespace flhal::test {
namespace {

struct Planned {
  const kernels::TextKernel* text = nullptr;
  std::string reason;
  kernels::LaunchArgs args;
};

void plan_text(Planned& p, uint32_t op, const std::vector<const Array*>& arrays, const kernels::Target& target, flhal_dtype compute = 0) {
  std::vector<flhal_tensor_v1> tensors;
  for (const Array* a : arrays) tensors.push_back(a->tensor());
  flhal_op_call_v1 call{};
  call.struct_size = sizeof call;
  call.op = op;
  call.name = "";
  call.tensors = tensors.data();
  call.tensor_stride = sizeof(flhal_tensor_v1);
  call.attr_stride = sizeof(flhal_attr_v1);
  call.n_outputs = 1;
  call.n_inputs = static_cast<uint32_t>(arrays.size()) - 1;
  call.compute_dtype = compute;
  const char* reason = "";
  auto plan = kernels::make_kernel_plan(call, target, &reason);
  p.reason = reason;
  p.text = plan ? plan->text : nullptr;
  if (plan) plan->arguments(call, p.args);
}

kernels::Target open_cl(kernels::Schedule schedule = kernels::Schedule::kFat) {
  kernels::Target t;
  t.dialect = kernels::Dialect::kOpenClC;
  t.schedule = schedule;
  return t;
}

TEST_CASE("texts: one class, one text; layouts, sizes and the dtype of a host scalar make no class", "[kernels][texts]") {
  std::set<const kernels::TextKernel*> seen;
  for (Layout layout : kLayouts)
    for (int64_t n : {1, 3, 700}) {
      Array out(FLHAL_F32, {n, 5}), a(FLHAL_F32, {n, 5}, layout), b(FLHAL_F32, {1, 5});
      Planned p;
      plan_text(p, FLHAL_OP_MUL, {&out, &a, &b}, open_cl());
      REQUIRE(p.text);
      seen.insert(p.text);
    }
  REQUIRE(seen.size() == 1);
  for (flhal_dtype scalar : {FLHAL_F64, FLHAL_F32, FLHAL_I64, FLHAL_BOOL}) {
    Array out(FLHAL_F32, {4}), a(FLHAL_F32, {4}), b = Array::host_scalar(scalar, 1);
    Planned p;
    plan_text(p, FLHAL_OP_MUL, {&out, &a, &b}, open_cl(), FLHAL_F32);
    REQUIRE(p.text);
    seen.insert(p.text);
  }
  REQUIRE(seen.size() == 2);                       // a tensor, or a number
  Array out(FLHAL_F32, {4, 6}), a(FLHAL_F32, {4, 5}), b(FLHAL_F32, {5, 6}), c(FLHAL_F32, {4, 6});
  Planned with, without;
  plan_text(with, FLHAL_OP_MATMUL, {&out, &a, &b, &c}, open_cl());
  plan_text(without, FLHAL_OP_MATMUL, {&out, &a, &b}, open_cl());
  REQUIRE(with.text == without.text);
}

TEST_CASE("texts: memory is passed from the start of its slab, offsets and geometry by value", "[kernels][texts]") {
  Array out(FLHAL_F32, {4}, Layout::kOffset), a(FLHAL_F32, {4}, Layout::kOffset);
  flhal_tensor_v1 t[2] = {out.tensor(), a.tensor()};
  for (int i = 0; i < 2; ++i) { t[i].memory = reinterpret_cast<flhal_p_memory*>(t + i); t[i].offset = 12; }
  flhal_op_call_v1 call{};
  call.op = FLHAL_OP_NEG;
  call.tensors = t;
  call.tensor_stride = sizeof t[0];
  call.n_outputs = call.n_inputs = 1;
  const char* reason = "";
  auto plan = kernels::make_kernel_plan(call, open_cl(), &reason);
  REQUIRE(plan);
  kernels::LaunchArgs args;
  plan->arguments(call, args);
  int64_t offsets[8] = {};
  for (uint32_t i = 0; i < args.n_args; ++i) {
    REQUIRE(args.args[i].offset == 0);
    if (args.args[i].kind == FLHAL_ARG_MEMORY) REQUIRE(args.args[i].address == t[args.operand[i]].address - 12);
    if (args.args[i].kind == FLHAL_ARG_VALUE && args.args[i].size == 64) std::memcpy(offsets, args.args[i].value, 64);
    if (args.args[i].kind == FLHAL_ARG_VALUE) REQUIRE(args.args[i].size <= 1024);   // the least a driver must take
  }
  REQUIRE(offsets[0] == 12);
  REQUIRE(offsets[1] == 12);
}

TEST_CASE("texts: a chip without float64 is told so, and float32 needs none", "[kernels][texts]") {
  for (auto schedule : {kernels::Schedule::kFat, kernels::Schedule::kThin}) {
    kernels::Target small = open_cl(schedule);
    small.fp64 = false;
    Array d(FLHAL_F64, {8}), f(FLHAL_F32, {8});
    Planned p;
    plan_text(p, FLHAL_OP_EXP, {&d, &d}, small);
    REQUIRE_FALSE(p.text);
    REQUIRE(p.reason == "the chip has no float64");
    plan_text(p, FLHAL_OP_COPY, {&f, &d}, small);
    REQUIRE_FALSE(p.text);
    plan_text(p, FLHAL_OP_COPY, {&d, &d}, small);   // bytes move, whatever they mean
    REQUIRE(p.text);
    Array number = Array::host_scalar(FLHAL_F64, 2);
    plan_text(p, FLHAL_OP_MUL, {&f, &f, &number}, small, FLHAL_F32);
    REQUIRE(p.text);
    REQUIRE(p.text->source.find("#define FP64 0") != std::string::npos);
    REQUIRE(p.args.group_size[0] == (schedule == kernels::Schedule::kFat ? 1u : 64u));
  }
  Array c(FLHAL_C64, {8});
  Planned p;
  plan_text(p, FLHAL_OP_MUL, {&c, &c, &c}, open_cl());
  REQUIRE_FALSE(p.text);
  REQUIRE(p.reason == "the OpenCL texts have no complex arithmetic yet");
}

TEST_CASE("texts: cat has none, whatever its arguments hold, and says so", "[kernels][texts]") {
  // Its VALUE is no PointwiseParams; read as one, it named a number of operands that lay beyond every array.
  Array out(FLHAL_F32, {6, 4}), a(FLHAL_F32, {2, 4}), b(FLHAL_F32, {4, 4});
  for (int i = 0; i < 50; ++i) {
    Planned p;
    plan_text(p, FLHAL_OP_CAT, {&out, &a, &b}, open_cl());
    REQUIRE_FALSE(p.text);
    REQUIRE(p.reason == "no text for this operator in OpenCL C yet");
  }
}

}  // namespace
}  // namespace flhal::test
