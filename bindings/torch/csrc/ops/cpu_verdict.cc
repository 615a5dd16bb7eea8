// csrc/ops/cpu_verdict.cc: see cpu_verdict.h.
#include "csrc/ops/cpu_verdict.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include "csrc/ops/twins.h"

namespace torch_fl {
namespace {

// Results of this many elements are made on the CPU only to be thrown away.
constexpr int64_t kResultMax = 1 << 16;

// The Meta kernel has warned already, or the operator itself will.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Small operands are zeros in memory of their own, since some kernels go by strides; of large ones one zero is seen at every place.
// What is written has memory that nobody reads.
constexpr size_t kBytesMax = 1 << 18;

at::Tensor twin_of(const at::Tensor& t, bool written) {
  if (!t.defined() || t.is_cpu()) return t;
  if (written || t.numel() == 0) return at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
  const bool small = at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.itemsize()) <= kBytesMax;
  at::Tensor twin = small ? at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type())
                          : at::detail::empty_cpu({1}, t.scalar_type(), false, std::nullopt);
  std::memset(twin.mutable_data_ptr(), 0, twin.storage().nbytes());
  const c10::DimVector still(t.dim(), 0);
  if (!small) twin.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), still);
  return twin;
}

}  // namespace

bool nothing_to_compute(const Frame& f, const Spec& spec) {
  const auto numel = [](const OutSpec& s) { return s.dtype == c10::ScalarType::Undefined ? 0 : c10::multiply_integers(s.sizes); };
  if (spec.outs.empty()) return false;
  const int64_t n = numel(spec.outs[0]);
  if (n == 0) return true;
  bool any = false;
  for (uint32_t i = 0; i < f.n_inputs(); ++i) {
    if (!f.args[i].isTensor() || !f.args[i].toTensor().defined() || f.args[i].toTensor().is_cpu()) continue;
    if (f.args[i].toTensor().numel() != 0) return false;
    any = true;
  }
  return any && n <= kResultMax;
}

bool has_cpu_verdict(const Frame& f) {
  bool generator = false;
  for (const c10::Argument& a : f.entry.op.schema().arguments()) generator |= a.name() == "generator";
  if (f.entry.op.hasTag(at::Tag::nondeterministic_seeded) && !generator) return false;
  return f.entry.op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

void ask_cpu(const Frame& f) {
  Silence silence;
  c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  const auto written = [&](uint32_t i) { return i >= f.entry.first_out || (i == 0 && f.entry.form == Form::kInplace); };
  const auto generator = [] { return c10::IValue(at::detail::createCPUGenerator(0)); };      // the user's is never touched
  torch::jit::Stack stack =
      twin_stack(f, f.entry.n_args, [&](const at::Tensor& t, uint32_t i) { return twin_of(t, written(i)); }, generator);
  const c10::FunctionSchema& schema = f.entry.op.schema();
  for (uint32_t i = 0; i < f.entry.n_args; ++i)
    if (stack[i].isNone() && schema.arguments()[i].name() == "generator") stack[i] = generator();
  f.entry.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

}  // namespace torch_fl
