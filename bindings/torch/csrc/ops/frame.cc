// csrc/ops/frame.cc: from a boxed call to results: devices, shapes, overlaps, memory, handler, fallback.
#include "csrc/ops/frame.h"

#include <ATen/MemoryOverlap.h>

#include <atomic>

#include "csrc/copy.h"
#include "csrc/fallback.h"
#include "csrc/ops/infer.h"

namespace torch_fl {
namespace {

bool is_number_type(const c10::TypePtr& type) {
  c10::TypePtr t = type;
  if (auto optional = t->cast<c10::OptionalType>()) t = optional->getElementType();
  return t->kind() == c10::TypeKind::NumberType || t->kind() == c10::TypeKind::FloatType;
}

constexpr c10::DeviceType kOurs = c10::DeviceType::PrivateUse1;

struct Devices {
  c10::DeviceIndex index = -1;
  bool cpu_seen = false;     // a CPU tensor that may only stay when it is a 0-dim operand
  const at::Tensor* stray = nullptr;

  void see(const at::Tensor& t, bool scalar_allowed) {
    if (!t.defined()) return;
    c10::Device d = t.device();
    if (C10_LIKELY(d.type() == kOurs)) {
      if (index < 0) index = d.index();
      else if (C10_UNLIKELY(index != d.index())) raise_two_devices(c10::Device(kOurs, index), d);
    } else if (!(scalar_allowed && d.is_cpu() && t.dim() == 0)) {
      stray = &t;
    }
  }
};

void find_device(Frame& f) {
  Devices devices;
  const bool scalars = (f.entry.row->flags & kCpuScalars) != 0;
  for (uint32_t i = 0; i < f.entry.n_args; ++i) {
    const c10::IValue& v = f.args[i];
    const bool written = i >= f.entry.first_out || (i == 0 && f.entry.form == Form::kInplace);
    if (v.isTensor()) {
      devices.see(v.toTensor(), scalars && !written);
    } else if (v.isTensorList()) {
      for (const at::Tensor& t : v.toTensorVector()) {
        devices.see(t, false);
        if (devices.stray) raise_two_devices(c10::Device(kOurs, std::max<c10::DeviceIndex>(devices.index, 0)), t.device());
      }
    }
  }
  if (C10_UNLIKELY(devices.stray != nullptr)) {
    c10::Device ours(kOurs, std::max<c10::DeviceIndex>(devices.index, 0));
    raise_two_devices(ours, devices.stray->device());
  }
  f.device = devices.index;
}

// Equal shapes, dense, one dtype that the op keeps: the result's shape needs no asking. `first` is the model of the result.
const at::Tensor* fast_model(const Frame& f) {
  const Row& row = *f.entry.row;
  const at::Tensor* first = nullptr;
  c10::ScalarType type = c10::ScalarType::Undefined;
  for (uint32_t i = 0; i < f.n_inputs(); ++i) {
    const c10::IValue& v = f.args[i];
    if (v.isTensor()) {
      const at::Tensor& t = v.toTensor();
      if (!t.defined()) continue;
      const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
      if (t.is_cpu()) {                       // a wrapped number beside a tensor with dimensions
        if (!impl->is_wrapped_number() || c10::isComplexType(t.scalar_type()) || t.scalar_type() == at::kBool) return nullptr;
        continue;
      }
      if (!impl->is_contiguous()) return nullptr;
      if (i == 0 && (row.flags & kSkipFirstType)) {
        if (t.scalar_type() != c10::ScalarType::Bool) return nullptr;
      } else if (type == c10::ScalarType::Undefined) {
        type = t.scalar_type();
        if (!c10::isFloatingType(type)) return nullptr;
      } else if (t.scalar_type() != type) {
        return nullptr;
      }
      if (first == nullptr) first = &t;
      else if (impl->sizes() != first->sizes()) return nullptr;
    } else if (v.isComplexDouble() || (v.isBool() && f.entry.args[i].number)) {   // some ops refuse bools beside floats
      return nullptr;
    } else if (v.isTensorList() || v.isIntList()) {
      return nullptr;
    }
  }
  if (first == nullptr || type == c10::ScalarType::Undefined || first->dim() == 0 || first->numel() == 0) return nullptr;
  if (f.entry.form == Form::kInplace && f.args[0].toTensor().scalar_type() != type) return nullptr;
  if (f.entry.form == Form::kOut) {
    const at::Tensor& out = f.args[f.entry.first_out].toTensor();
    c10::ScalarType want = (row.flags & kBoolResult) ? c10::ScalarType::Bool : type;
    if (out.scalar_type() != want || out.sizes() != first->sizes() || !out.is_contiguous()) return nullptr;
  }
  return first;
}

c10::ScalarType fast_type(const Frame& f) {
  for (uint32_t i = (f.entry.row->flags & kSkipFirstType) ? 1 : 0; i < f.n_inputs(); ++i)
    if (f.args[i].isTensor() && f.args[i].toTensor().defined() && !f.args[i].toTensor().is_cpu())
      return f.args[i].toTensor().scalar_type();
  return c10::ScalarType::Undefined;
}

// The CPU's operator would refuse this call: see cpu_limits.def.
bool beyond_cpu(const Frame& f) {
  const uint32_t limits = f.entry.limits;
  const c10::ScalarType type = f.compute;
  if ((limits & kUnsigned) && c10::isBarebonesUnsignedType(type)) return true;
  if ((limits & kBool) && type == at::kBool) return true;
  if ((limits & kWhole) && c10::isIntegralType(type, true)) return true;
  if ((limits & kComplex) && c10::isComplexType(type)) return true;
  if ((limits & kFloats) && c10::isFloatingType(type)) return true;
  if (limits & kMixed) {
    for (uint32_t i = 0; i < f.n_inputs(); ++i)
      if (f.args[i].isTensor() && f.args[i].toTensor().defined() && f.args[i].toTensor().scalar_type() != type) return true;
  }
  if (f.entry.form != Form::kOut) return false;
  const c10::ScalarType out = f.args[f.entry.first_out].toTensor().scalar_type();
  return ((limits & kOtherOut) && out != type) || ((limits & kUnsignedOut) && c10::isBarebonesUnsignedType(out));
}

void check_overlap(const Frame& f, const at::Tensor& written) {
  if (!(f.entry.row->flags & kSelfOverlap)) at::assert_no_internal_overlap(written);
  if (f.entry.row->flags & kMayOverlap) return;
  for (uint32_t i = 0; i < f.n_inputs(); ++i) {
    if (f.args[i].isTensor() && f.args[i].toTensor().defined()) {
      at::assert_no_partial_overlap(written, f.args[i].toTensor());
    } else if (f.args[i].isTensorList()) {
      for (const at::Tensor& t : f.args[i].toTensorVector()) at::assert_no_overlap(written, t);
    }
  }
}

void take_out(Frame& f, uint32_t i) {
  const at::Tensor& out = f.args[f.entry.first_out + i].toTensor();
  bool as_given = false;
  if (f.spec != nullptr && f.spec->outs[i].dtype != c10::ScalarType::Undefined) {
    const OutSpec& s = f.spec->outs[i];
    if (C10_UNLIKELY(out.sizes() != c10::IntArrayRef(s.sizes))) {
      for (uint32_t k = 0; k < f.n_inputs(); ++k)     // PyTorch's Python Meta kernels do not see that they are one
        TORCH_CHECK(!f.args[k].isTensor() || !f.args[k].toTensor().is_same(out), "output with shape ", out.sizes(),
                    " doesn't match the broadcast shape ", c10::IntArrayRef(s.sizes));
      as_given = (f.entry.row->flags & kFast) != 0;          // as TensorIterator does
      if (as_given) check_overlap(f, out);
      resize_output(out, s.sizes);
      if (out.strides() != c10::IntArrayRef(s.strides)) out.unsafeGetTensorImpl()->set_sizes_and_strides(s.sizes, s.strides);
    }
  }
  if (!as_given) check_overlap(f, out);
  // Pointwise rows: the CPU rounds to the arithmetic type and then converts, so the result is stored in that type first.
  constexpr uint32_t kTest = kFast | kBoolResult;
  if (C10_UNLIKELY(out.scalar_type() != f.compute) && (f.entry.row->flags & kTest) == kFast && computed_wider(f.compute)) {
    f.wide_out = out;
    f.results.push_back(f.temporary(out.sizes(), f.compute));
    return;
  }
  f.results.push_back(out);
}

void make_results(Frame& f, const at::Tensor* model) {
  switch (f.entry.form) {
    case Form::kFunctional:
      if (model != nullptr) {
        c10::ScalarType type = (f.entry.row->flags & kBoolResult) ? c10::ScalarType::Bool : f.compute;
        f.results.push_back(empty_contiguous(model->sizes(), type, f.device));
        return;
      }
      for (const OutSpec& s : f.spec->outs) {
        if (s.dtype == c10::ScalarType::Undefined) f.results.emplace_back();
        else if (s.contiguous) f.results.push_back(empty_contiguous(s.sizes, s.dtype, f.device));
        else f.results.push_back(empty_like_strided(s.sizes, s.strides, s.dtype, f.device));
      }
      return;
    case Form::kInplace:
      check_overlap(f, f.args[0].toTensor());
      f.results.push_back(f.args[0].toTensor());
      return;
    case Form::kOut:
      for (uint32_t i = 0; i < f.entry.n_results; ++i) take_out(f, i);
      return;
  }
}

}  // namespace

Entry::Entry(const Row* r, c10::OperatorHandle o, Form fm) : row(r), op(o), form(fm) {
  static std::atomic<uint64_t> next_id{1};
  id = next_id.fetch_add(1);
  const c10::FunctionSchema& schema = op.schema();
  name = schema.name();
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  n_args = static_cast<uint32_t>(schema.arguments().size());
  n_results = static_cast<uint32_t>(schema.returns().size());
  first_out = n_args;
  structured = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
  for (uint32_t i = 0; i < n_args; ++i) {
    const c10::Argument& a = schema.arguments()[i];
    Arg arg;
    arg.number = is_number_type(a.type());
    for (const AttrRule& rule : row->attrs)
      if (rule.argument != nullptr && a.name() == rule.argument) arg.attr = &rule;
    if (a.is_out() && first_out == n_args) first_out = i;
    args.push_back(arg);
  }
}

namespace {

// The element of a 0-dim CPU tensor. item() would go through the dispatcher; numbers of Python come as these three.
c10::Scalar element_of(const at::Tensor& t) {
  const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  if (!impl->is_conj() && !impl->is_neg()) {
    switch (t.scalar_type()) {
      case at::kDouble: return *static_cast<const double*>(t.const_data_ptr());
      case at::kLong: return *static_cast<const int64_t*>(t.const_data_ptr());
      case at::kBool: return *static_cast<const bool*>(t.const_data_ptr());
      default: break;
    }
  }
  return t.item();
}

// A tensor of no dimensions beside larger ones may be of a type that the arithmetic type does not hold: int64 beside int8,
// float32 beside float16. The CPU converts it first: 300 is 44 beside int8.
bool rounds_first(const Frame& f, const at::Tensor& t, uint32_t i) {
  if (!computed_wider(f.compute) || holds(f.compute, t.scalar_type())) return false;
  // The CPU's products and quotients of half types keep a second operand of no dimensions in f32.
  return !(i == 1 && (f.entry.row->flags & kOpmathScalar) && c10::isReducedFloatingType(f.compute));
}
at::Tensor rounded(const Frame& f, const at::Tensor& t) {
  at::Tensor to = f.temporary(t.sizes(), f.compute);
  if (t.numel() != 0 && !in_dry_run()) copy_into(to, t, false);
  return to;
}

}  // namespace

bool computed_wider(c10::ScalarType type) {
  return !(type == at::kFloat || type == at::kDouble || type == at::kLong || type == at::kComplexDouble);
}

bool holds(c10::ScalarType type, c10::ScalarType from) {
  if (from == type || from == at::kBool) return true;
  if (c10::isBarebonesUnsignedType(from) || c10::isBarebonesUnsignedType(type)) return false;
  if (c10::isReducedFloatingType(type) && c10::isIntegralType(from, true)) return c10::elementSize(from) == 1;
  return c10::promoteTypes(from, type) == type;
}

void add_operand(Frame& f, OpCall& call, uint32_t i) {
  const c10::IValue& v = f.args[i];
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    if (!t.defined()) return call.in_absent();
    if (C10_LIKELY(!t.is_cpu())) {
      if (C10_LIKELY(t.scalar_type() == f.compute) || !rounds_first(f, t, i)) return call.in(t);
      return call.in(f.keep(rounded(f, t)));
    }
    return call.in_scalar(element_of(t), arithmetic_type(f));
  }
  if (v.isNone()) return call.in_absent();
  call.in_scalar(v.toScalar(), arithmetic_type(f));
}

// f16 and bf16 beside a number as second operand: the CPU's kernels keep the number in f32, so the whole call is said to be in
// f32; it is rounded once all the same.
c10::ScalarType arithmetic_type(const Frame& f) {
  if (C10_LIKELY(!c10::isReducedFloatingType(f.compute)) || !(f.entry.row->flags & kOpmathScalar)) return f.compute;
  const c10::IValue& second = f.args[1];
  return (second.isTensor() ? second.toTensor().is_cpu() : second.isScalar()) ? at::kFloat : f.compute;
}

bool Frame::fill(const at::Tensor& t, const c10::Scalar& value) const {
  if (!t.defined() || t.numel() == 0) return true;
  OpCall call(FLHAL_OP_FILL, t.scalar_type());
  call.out(t);
  call.in_scalar(value, t.scalar_type());
  return submit(call);
}

void add_attrs(Frame& f, OpCall& call) {
  for (uint32_t i = 0; i < f.n_inputs(); ++i) {
    const AttrRule* rule = f.entry.args[i].attr;
    if (rule == nullptr) continue;
    const c10::IValue& v = f.args[i];
    if (v.isNone()) continue;
    if (v.isString()) {                          // approximate="none" | "tanh"
      TORCH_CHECK(v.toStringRef() == "tanh" || v.toStringRef() == "none", "approximate argument must be either none or tanh, not '",
                  v.toStringRef(), "'.");
      call.attr(rule->key, static_cast<int64_t>(v.toStringRef() == "tanh"));
      continue;
    }
    c10::Scalar s = v.toScalar();
    if (rule->dynamic && !s.isComplex() && s.toDouble() == 1.0) continue;
    call.attr(rule->key, s, rule->dynamic);
  }
}

bool infer_results(Frame& f) {
  if (!infer(f)) return false;
  make_results(f, nullptr);
  return true;
}

namespace {

void fall_back(Frame& f) {
  f.results.clear();
  run_fallback(f.entry.op, f.stack, decline_reason());   // in a dry run it only notes, and gives results of the right shape
}

}  // namespace

void run_entry(const Entry& entry, torch::jit::Stack* stack) {
  Frame f(entry, stack);
  AtenScope scope(&entry.name);
  find_device(f);
  const uint32_t flags = entry.row->flags;
  if (!(flags & kOwnResults)) {
    const at::Tensor* model = (flags & kFast) ? fast_model(f) : nullptr;
    if (model != nullptr) f.compute = fast_type(f);
    else if (!infer(f)) return fall_back(f);
    if (C10_UNLIKELY(entry.limits != 0 && (model == nullptr || (entry.limits & kFloats))) && beyond_cpu(f)) {
      f.decline("torch's CPU operator does not do it either");
      return fall_back(f);
    }
    if (C10_UNLIKELY(f.device < 0)) f.device = 0;
    make_results(f, model);
  }
  if (C10_UNLIKELY(!entry.row->handler(f))) return fall_back(f);
  if (C10_UNLIKELY(f.wide_out.defined())) {
    if (!in_dry_run()) copy_into(f.wide_out, f.results[0], false);
    f.results[0] = f.wide_out;
  }
  torch::jit::drop(*stack, entry.n_args);
  for (at::Tensor& t : f.results) stack->emplace_back(std::move(t));
}

void EntryKernel::operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
  run_entry(*entry, stack);
}

}  // namespace torch_fl
