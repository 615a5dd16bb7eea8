// conformance/areas/op_call.cc: planning, running and comparing native operations.
#include "areas/op_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace flhal::conformance {
namespace {

// The call as the plugin sees it; points into `call` and into itself.
struct Described {
  std::vector<flhal_tensor_v1> tensors;
  flhal_op_call_v1 call{};
  Described(const OpCall& c, bool only_planned) {
    auto take = [&](const Tensor& t) { tensors.push_back(only_planned ? t.describe_for_planning() : t.describe()); };
    for (const Tensor& t : c.outputs) take(t);
    for (size_t i = 0; i < c.inputs.size(); ++i) take(i < c.n_in_place ? c.outputs[i] : c.inputs[i]);
    call.struct_size = sizeof call;
    call.struct_type = FLHAL_ST_OP_CALL;
    call.op = c.row->number;
    call.name = c.row->name;
    call.tensors = tensors.data();
    call.groups = c.groups.empty() ? nullptr : c.groups.data();
    call.attrs = c.attributes.list().data();
    call.tensor_stride = sizeof(flhal_tensor_v1);
    call.n_outputs = static_cast<uint32_t>(c.outputs.size());
    call.n_inputs = static_cast<uint32_t>(c.inputs.size());
    call.n_groups = static_cast<uint32_t>(c.groups.size());
    call.attr_stride = sizeof(flhal_attr_v1);
    call.n_attrs = static_cast<uint32_t>(c.attributes.list().size());
    call.compute_dtype = c.compute;
    call.alias = c.n_in_place != 0 ? FLHAL_ALIAS_EXACT : FLHAL_ALIAS_NONE;
  }
};

// How far from the reference an element may be: rounding errors are relative to the largest intermediate value. Functions
// may be off by 8 units in the last place; sums add one rounding per term.
double allowed(const OpCall& call, const Expected& e, size_t i, flhal_dtype out) {
  double step = half_step(out), compute = std::max(half_step(call.compute), 0x1p-53);
  if (step == 0 && call.row->accuracy != Accuracy::kExact && is_float(call.compute)) return 0;
  double size = std::max(std::fabs(e.value[i]), e.magnitude[i]);
  // float16 and bfloat16 are computed in float32 and rounded once.
  double arithmetic = call.compute == FLHAL_F16 || call.compute == FLHAL_BF16 ? 0x1p-24 : compute;
  double least = out == FLHAL_F16 ? 0x1p-24 : out == FLHAL_F64 ? 0 : 0x1p-133;     // of numbers below the normal ones
  switch (call.row->accuracy) {
    case Accuracy::kExact: return 0;
    case Accuracy::kRounded: return 2 * step * std::fabs(e.value[i]) + 8 * arithmetic * size + least;
    case Accuracy::kTranscendental: return 2 * step * std::fabs(e.value[i]) + 16 * arithmetic * size + least;
    case Accuracy::kAccumulated: return 2 * step * std::fabs(e.value[i]) + (8 + 2 * static_cast<double>(e.terms)) * arithmetic * size + least;
  }
  return 0;
}

void compare_complex(const OpCall& call, const Tensor& t, const Expected& e, const std::string& what) {
  for (int64_t i = 0; i < t.count(); ++i) {
    auto k = static_cast<size_t>(i);
    Expected modulus(1);
    modulus.set(0, std::hypot(e.value[k], e.imaginary[k]), e.magnitude[k]);
    modulus.terms = e.terms;
    double real = t.fetched(i), imaginary = t.fetched_imaginary(i), most = allowed(call, modulus, 0, t.dtype);
    if (std::hypot(real - e.value[k], imaginary - e.imaginary[k]) <= most) continue;
    fail(fmt::format("{}: element {} of {} is {:.9g}{:+.9g}i, it must be {:.9g}{:+.9g}i give or take {:.3g}", call.what, i, what, real, imaginary,
                     e.value[k], e.imaginary[k], most));
  }
}

void compare(const OpCall& call, const Tensor& t, const Expected& e, const std::string& what) {
  if (!e.imaginary.empty()) return compare_complex(call, t, e, what);
  uint8_t rounded[16];
  for (int64_t i = 0; i < t.count(); ++i) {
    auto k = static_cast<size_t>(i);
    write_element(t.dtype, rounded, e.value[k]);
    double got = t.fetched(i), wanted = read_element(t.dtype, rounded), most = allowed(call, e, k, t.dtype);
    if (got == wanted || (std::isnan(got) && std::isnan(wanted)) || std::fabs(got - e.value[k]) <= most) continue;
    fail(fmt::format("{}: element {} of {} is {:.9g}, it must be {:.9g}{}", call.what, i, what, got, wanted,
                     most > 0 ? fmt::format(" give or take {:.3g}", most) : ""));
  }
}

}  // namespace

const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> rows = {
#define FLHAL_OP_ROW(number, name, family, n_outputs, outputs, inputs, dtypes, out_dtype, in_place, accuracy) \
  OpRow{number, #name, #family, n_outputs, outputs, inputs, #dtypes, #out_dtype, in_place, Accuracy::accuracy},
#include "op_rows.def"
#undef FLHAL_OP_ROW
  };
  return rows;
}
const OpRow& op_row(const std::string& name) {
  for (const OpRow& r : op_rows())
    if (name == r.name) return r;
  throw std::logic_error("the op set has no " + name);
}

Plan::Plan(Context& ctx, Device& device, const OpCall& call, bool only_planned) : device_(device), ops_(*ctx.plugin().ops()) {
  info_.struct_size = sizeof info_;
  info_.struct_type = FLHAL_ST_PLAN_INFO;
  Described d(call, only_planned);
  auto serial = device.plugin.lock();
  take_error();
  flhal_status answer = ops_.plan_create(device.handle, &d.call, &info_, &handle_);
  if (answer == FLHAL_DECLINED) {
    FLHAL_EXPECT(handle_ == nullptr, "{}: plan_create declined and gave a plan all the same", call.what);
    FLHAL_EXPECT(info_.reason != nullptr && *info_.reason != 0, "{}: plan_create declined without a reason", call.what);
    FLHAL_EXPECT(!take_error().called, "{}: plan_create declined and called set_error; FLHAL_DECLINED carries no text", call.what);
    reason_ = info_.reason;
    return;
  }
  expect_ok(answer, fmt::format("{}: plan_create", call.what).c_str());
  FLHAL_EXPECT(handle_ != nullptr, "{}: plan_create answered FLHAL_OK and gave no plan", call.what);
  FLHAL_EXPECT(info_.struct_size == sizeof info_ && info_.struct_type == FLHAL_ST_PLAN_INFO, "{}: plan_create changed the head of flhal_plan_info_v1", call.what);
}
Plan::~Plan() {
  if (handle_ == nullptr) return;
  auto serial = device_.plugin.lock();
  ops_.plan_destroy(handle_);
}
void Plan::expect_given() const {
  if (!given()) not_supported("declined: " + reason_);
}
std::unique_ptr<Slab> Plan::workspace() const {
  return info_.workspace_bytes != 0 ? std::make_unique<Slab>(device_, info_.workspace_bytes, info_.workspace_align) : nullptr;
}
void Plan::run(const OpCall& call, Slab* workspace) const {
  std::unique_ptr<Slab> own = workspace == nullptr ? this->workspace() : nullptr;
  if (workspace == nullptr) workspace = own.get();
  flhal_p_place place{};
  if (workspace != nullptr) place = workspace->place(0);
  Described d(call, false);
  auto serial = device_.plugin.lock();
  expect_ok(ops_.plan_run(handle_, nullptr, &d.call, workspace != nullptr ? &place : nullptr),
            fmt::format("{}: a plan was given, and plan_run", call.what).c_str());
}

void upload(Device& device, OpCall& call) {
  for (Tensor& t : call.outputs) t.upload(device);
  for (Tensor& t : call.inputs) t.upload(device);
}
void expect_results(Device& device, OpCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i].given) continue;
    call.outputs[i].fetch(device);
    if (i < call.expected.size()) compare(call, call.outputs[i], call.expected[i], fmt::format("output {}", i));
    call.outputs[i].expect_guards(call.what, true);
  }
  for (size_t i = call.n_in_place; i < call.inputs.size(); ++i) {
    call.inputs[i].fetch(device);
    auto written = call.written.find(i);
    if (written != call.written.end()) compare(call, call.inputs[i], written->second, fmt::format("input {}, which is written,", i));
    call.inputs[i].expect_guards(call.what, written != call.written.end());
  }
}
void run_and_compare(Context& ctx, OpCall& call) {
  ctx.need_ops();
  Device& device = ctx.device();
  upload(device, call);
  Plan plan(ctx, device, call);
  plan.expect_given();
  plan.run(call);
  expect_results(device, call);
}

}  // namespace flhal::conformance
