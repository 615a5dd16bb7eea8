// tests/kernels/run_plan.cc: see run_plan.h.
#include "run_plan.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include "kernels/levels.h"
#include "opencl_device.h"

namespace flhal::test {

// extra.cmake runs the executable once more per level.
static const bool level_chosen = [] {
  const char* name = std::getenv("FLHAL_TEST_KERNEL_LEVEL");
  return name != nullptr && kernels::level_force(name);
}();

bool left_out(uint32_t n) {
  static const bool few = std::getenv("FLHAL_TEST_KERNEL_FEW") != nullptr;
  static uint32_t met = 0;
  return few && met++ % n != 0;
}

Outcome try_op(uint32_t op, const std::vector<Array*>& outputs, const std::vector<const Array*>& inputs, flhal_dtype compute,
               const std::vector<Attr>& attrs) {
  kernels::Target target;
  const bool on_device = text_target(&target);
  DeviceArrays arrays;
  std::vector<flhal_tensor_v1> tensors;
  for (const Array* a : outputs) tensors.push_back(on_device ? arrays.tensor(*a) : a->tensor());
  for (const Array* a : inputs) tensors.push_back(on_device ? arrays.tensor(*a) : a->tensor());
  std::vector<flhal_attr_v1> plain;
  for (const Attr& a : attrs) {
    flhal_attr_v1 v{};
    v.key = a.key;
    v.kind = a.kind;
    if (a.kind == FLHAL_ATTR_INT) v.v.i = a.i;
    if (a.kind == FLHAL_ATTR_FLOAT) v.v.f = a.f;
    if (a.kind == FLHAL_ATTR_INTS) { v.v.p = a.list.data(); v.count = static_cast<uint32_t>(a.list.size()); }
    if (a.kind == FLHAL_ATTR_PHILOX) { v.v.p = a.philox.data(); v.count = 1; }
    plain.push_back(v);
  }
  flhal_op_call_v1 call{};
  call.struct_size = sizeof call;
  call.op = op;
  call.name = "";
  call.tensors = tensors.data();
  call.attrs = plain.data();
  call.tensor_stride = sizeof(flhal_tensor_v1);
  call.attr_stride = sizeof(flhal_attr_v1);
  call.n_outputs = static_cast<uint32_t>(outputs.size());
  call.n_inputs = static_cast<uint32_t>(inputs.size());
  call.n_attrs = static_cast<uint32_t>(plain.size());
  call.compute_dtype = compute;

  Outcome outcome;
  const char* reason = "";
  auto plan = kernels::make_kernel_plan(call, target, &reason);
  outcome.reason = reason;
  // What the texts leave to others, said with a reason: complex numbers go to the host, cat is a composite of copies.
  const bool left_out = on_device && !plan && (outcome.reason.find("no complex arithmetic") != std::string::npos || op == FLHAL_OP_CAT);
  if (left_out) {
    for (size_t i = 0; i < outputs.size(); ++i) tensors[i] = outputs[i]->tensor();
    for (size_t i = 0; i < inputs.size(); ++i) tensors[outputs.size() + i] = inputs[i]->tensor();
    plan = kernels::make_kernel_plan(call, kernels::Target{}, &reason);
  }
  if (!plan) return outcome;
  outcome.planned = true;
  outcome.function = plan->text ? plan->text->name : plan->function;
  if (on_device && !left_out) {
    outcome.groups = arrays.run(*plan, call, &outcome.error);
    arrays.take();
    return outcome;
  }
  kernels::LaunchArgs args;
  if (plan->can_fail) args.error = &outcome.error;
  plan->arguments(call, args);
  REQUIRE(args.values_used <= sizeof args.values);
  REQUIRE(args.n_args <= kernels::kMaxArgs);
  std::vector<const void*> argv;
  for (uint32_t i = 0; i < args.n_args; ++i) {
    const flhal_p_arg& a = args.args[i];
    argv.push_back(args.operand[i] < 0 ? a.value : reinterpret_cast<const void*>(a.address));
  }
  outcome.groups = args.groups[0];
  std::vector<std::pair<uint64_t, uint64_t>> pieces;           // [first, count)
  for (uint64_t at = 0; at < args.groups[0];) {
    uint64_t n = std::min<uint64_t>(1 + at % 3, args.groups[0] - at);
    pieces.push_back({at, n});
    at += n;
  }
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937(7));
  for (auto [first, count] : pieces) plan->host(argv.data(), first, count);
  return outcome;
}

Outcome run_op(uint32_t op, const std::vector<Array*>& outputs, const std::vector<const Array*>& inputs, flhal_dtype compute,
               const std::vector<Attr>& attrs) {
  Outcome outcome = try_op(op, outputs, inputs, compute, attrs);
  INFO("op " << op << ", " << outcome.function << ", " << outcome.reason);
  REQUIRE(outcome.planned);
  REQUIRE(outcome.error.code == 0);
  for (const Array* a : outputs)
    if (!a->absent) REQUIRE(a->canaries_intact());
  return outcome;
}

void check_close(const std::vector<double>& got, const std::vector<double>& want, double relative, double absolute,
                 const std::string& what) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    bool same = (std::isnan(got[i]) && std::isnan(want[i])) || got[i] == want[i] ||
                std::fabs(got[i] - want[i]) <= absolute + relative * std::fabs(want[i]);
    if (same) continue;
    INFO(what << ": element " << i << " is " << got[i] << ", expected " << want[i]);
    REQUIRE(same);
  }
}

double epsilon_of(flhal_dtype dtype) {
  switch (dtype) {
    case FLHAL_F16: return 0x1p-11;
    case FLHAL_BF16: return 0x1p-8;
    case FLHAL_F32: case FLHAL_C64: return 0x1p-24;
    case FLHAL_F64: case FLHAL_C128: return 0x1p-53;
    default: return 0;
  }
}

}  // namespace flhal::test
