// csrc/ops/infer.cc: see infer.h.
#include "csrc/ops/infer.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <array>
#include <cstring>

#include "csrc/call_site.h"
#include "csrc/ops/cpu_verdict.h"
#include "csrc/ops/twins.h"

namespace torch_fl {
namespace {

constexpr uint32_t kSlots = 1024;       // direct mapped; a model has a few hundred distinct calls
constexpr uint32_t kWordsMax = 192;

struct Slot {
  std::vector<uint64_t> key;
  Spec spec;
};
struct Table {
  std::array<Slot, kSlots> slots;
  Spec uncached;                        // answers that must not be remembered
};
thread_local Table* t_table = nullptr;

// What a result can depend on, as words.
struct Key {
  uint64_t words[kWordsMax];
  uint32_t n = 0;
  bool overflow = false;

  void put(uint64_t w) {
    if (C10_LIKELY(n < kWordsMax)) words[n++] = w;
    else overflow = true;
  }
  void put(const at::Tensor& t) {
    const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
    if (!t.defined()) return put(uint64_t{0x11});
    c10::IntArrayRef sizes = impl->sizes();
    bool contiguous = impl->is_contiguous();
    uint64_t head = 0x12 | static_cast<uint64_t>(c10::typeMetaToScalarType(impl->dtype())) << 8 |
                    static_cast<uint64_t>(sizes.size()) << 16 | static_cast<uint64_t>(t.is_cpu()) << 32 |
                    static_cast<uint64_t>(impl->is_wrapped_number()) << 33 | static_cast<uint64_t>(contiguous) << 34;
    put(head);
    for (int64_t s : sizes) put(static_cast<uint64_t>(s));
    if (!contiguous) for (int64_t s : impl->strides()) put(static_cast<uint64_t>(s));
  }
  void put(const c10::IValue& v, bool by_value) {
    if (v.isTensor()) {
      put(v.toTensor());
    } else if (v.isInt()) {
      put(uint64_t{0x21});
      if (by_value) put(static_cast<uint64_t>(v.toInt()));
    } else if (v.isDouble()) {
      put(uint64_t{0x22});
      double d = v.toDouble();
      uint64_t w;
      std::memcpy(&w, &d, sizeof w);
      if (by_value) put(w);
    } else if (v.isBool()) {
      put(uint64_t{0x23} | static_cast<uint64_t>(by_value && v.toBool()) << 8);
    } else if (v.isNone()) {
      put(uint64_t{0x24});
    } else if (v.isComplexDouble()) {
      put(uint64_t{0x25});
      if (by_value) {
        c10::complex<double> c = v.toComplexDouble();
        uint64_t w[2];
        std::memcpy(w, &c, sizeof w);
        put(w[0]);
        put(w[1]);
      }
    } else if (v.isIntList()) {
      c10::List<int64_t> list = v.toIntList();
      put(uint64_t{0x31} | static_cast<uint64_t>(list.size()) << 8);
      for (int64_t x : list) put(static_cast<uint64_t>(x));
    } else if (v.isBoolList()) {
      c10::List<bool> list = v.toBoolList();
      put(uint64_t{0x32} | static_cast<uint64_t>(list.size()) << 8);
      for (bool x : list) put(static_cast<uint64_t>(x));
    } else if (v.isString()) {
      const std::string& s = v.toStringRef();
      put(uint64_t{0x33} | static_cast<uint64_t>(s.size()) << 8);
      uint64_t w = 0;
      std::memcpy(&w, s.data(), std::min<size_t>(s.size(), sizeof w));
      put(w);
      overflow |= s.size() > sizeof w;
    } else if (v.isTensorList()) {
      c10::List<at::Tensor> list = v.toTensorList();
      put(uint64_t{0x34} | static_cast<uint64_t>(list.size()) << 8);
      for (size_t i = 0; i < list.size(); ++i) put(static_cast<const at::Tensor&>(list.get(i)));
    } else if (v.isOptionalTensorList()) {
      std::vector<std::optional<at::Tensor>> list = v.toOptionalTensorVector();
      put(uint64_t{0x35} | static_cast<uint64_t>(list.size()) << 8);
      for (const std::optional<at::Tensor>& t : list) put(t.value_or(at::Tensor()));
    } else if (v.isGenerator()) {
      put(uint64_t{0x26});
    } else {
      overflow = true;   // a kind that no row has so far: ask each time
    }
  }
  uint64_t hash() const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < n; ++i) {
      h = (h ^ words[i]) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
    }
    return h;
  }
};

at::Tensor meta_of(const at::Tensor& t) {
  if (!t.defined()) return t;
  // Python Meta kernels turn wrapped numbers back into numbers, which needs the CPU tensor itself.
  if (t.is_cpu() && t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
  at::Tensor m(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.scalar_type()));
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) m.unsafeGetTensorImpl()->set_wrapped_number(true);
  return m;
}

OutSpec spec_of(const at::Tensor& t) {
  OutSpec s;
  if (!t.defined()) return s;
  s.sizes.assign(t.sizes().begin(), t.sizes().end());
  s.strides.assign(t.strides().begin(), t.strides().end());
  s.dtype = t.scalar_type();
  s.contiguous = t.is_contiguous();
  return s;
}

// A backend without kernels: structured operators come to torch's default implementation there, which is the shape function.
constexpr c10::DispatchKey kShapeKey = c10::DispatchKey::IPU;

torch::jit::Stack meta_stack(const Frame& f, uint32_t n) {
  const auto none = [] { return c10::IValue(); };          // a Meta kernel draws nothing
  return twin_stack(f, n, [](const at::Tensor& t, uint32_t) { return meta_of(t); }, none);
}

// The CPU's TensorIterator converts operands of another dtype than the common one before it orders dimensions, and a conversion makes
// dense what is not: what such an operand counts for in the result's layout.
at::Tensor converted_layout(const at::Tensor& meta, c10::ScalarType type) {
  if (meta.scalar_type() == type || meta.dim() == 0 || meta.is_non_overlapping_and_dense()) return meta;
  return at::Tensor(at::detail::empty_strided_meta(meta.sizes(), at::infer_dense_strides(meta.sizes(), meta.strides()), meta.scalar_type()));
}

// What the shape function is given: the operands as the CPU's TensorIterator sees them.
torch::jit::Stack shape_stack(const Frame& f, uint32_t n) {
  torch::jit::Stack stack = meta_stack(f, n);
  const Row& row = *f.entry.row;
  if (f.entry.form == Form::kInplace || (row.promote != Promote::kSame && row.promote != Promote::kFloat)) return stack;
  const c10::ScalarType type = compute_type(f);
  for (uint32_t i = (row.flags & kSkipFirstType) ? 1 : 0; i < f.entry.first_out; ++i)
    if (stack[i].isTensor() && stack[i].toTensor().defined() && stack[i].toTensor().is_meta())
      stack[i] = converted_layout(stack[i].toTensor(), type);
  return stack;
}

// Runs the shape function. True when the answer may be remembered.
bool ask_meta(const Frame& f, Spec* spec) {
  const Entry& e = f.entry;
  at::AutoDispatchBelowADInplaceOrView below;
  const c10::KernelFunction* direct = shape_function(e.name);
  torch::jit::Stack functional;
  if (e.functional && direct == nullptr) {
    functional = shape_stack(f, e.first_out);
    const c10::KernelFunction* shape = shape_function(*e.functional);
    if (shape != nullptr) shape->callBoxed(*e.functional, c10::DispatchKeySet(c10::DispatchKey::Meta), &functional);
    else e.functional->redispatchBoxed(c10::DispatchKeySet(kShapeKey), &functional);
  }
  torch::jit::Stack stack = shape_stack(f, e.n_args);
  const bool by_shape = e.structured && e.form != Form::kOut;
  if (direct != nullptr)
    direct->callBoxed(e.op, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  else
    e.op.redispatchBoxed(c10::DispatchKeySet(by_shape ? kShapeKey : c10::DispatchKey::Meta), &stack);
  spec->outs.clear();
  bool keep = true;
  for (uint32_t i = 0; i < e.n_results; ++i) {
    spec->outs.push_back(spec_of(stack[i].isTensor() ? stack[i].toTensor() : at::Tensor()));
    if (e.form != Form::kOut || f.args[e.first_out + i].toTensor().sizes() == c10::IntArrayRef(spec->outs.back().sizes)) continue;
    keep = false;        // it was resized, perhaps with a warning: both shall happen each time
    // Python's Meta kernels make it row-major; the CPU gives it the layout of a new result.
    if (i < functional.size() && functional[i].isTensor() && functional[i].toTensor().sizes() == c10::IntArrayRef(spec->outs.back().sizes))
      spec->outs.back().strides.assign(functional[i].toTensor().strides().begin(), functional[i].toTensor().strides().end());
  }
  if (f.op() == FLHAL_OP_CONV2D) lay_out_convolution(f, spec);
  return keep;
}

bool has_empty_operand(const Frame& f) {
  const auto empty = [](const at::Tensor& t) { return t.defined() && t.numel() == 0; };
  for (uint32_t i = 0; i < f.n_inputs(); ++i)
    if (f.args[i].isTensor() && empty(f.args[i].toTensor())) return true;
  return false;
}

// False when only the Meta kernel refuses. What both refuse is told in the CPU's words.
bool ask(const Frame& f, Spec* spec, bool* keep) {
  try {
    *keep = ask_meta(f, spec);
    return true;
  } catch (const std::exception&) {
    if (!has_cpu_verdict(f)) throw;
    if (g_python_clear_error != nullptr) g_python_clear_error();   // a Meta kernel written in Python leaves its error set
  }
  ask_cpu(f);
  return false;
}

}  // namespace

const c10::KernelFunction* shape_function(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  return shape_function(schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name()));
}

c10::ScalarType compute_type(const Frame& f) {
  const Row& row = *f.entry.row;
  if (row.promote == Promote::kResult) {
    if (f.entry.form == Form::kFunctional) return f.spec->outs[0].dtype;
    return f.entry.form == Form::kInplace ? f.tensor(0).scalar_type() : f.args[f.entry.first_out].toTensor().scalar_type();
  }
  if (row.promote == Promote::kSelf) {
    for (uint32_t i = 0; i < f.n_inputs(); ++i) {
      if (f.args[i].isTensor()) return f.args[i].toTensor().scalar_type();
      if (f.args[i].isTensorList() && f.args[i].toTensorList().size() > 0)
        return static_cast<at::Tensor>(f.args[i].toTensorList()[0]).scalar_type();
    }
    return c10::ScalarType::Undefined;
  }
  at::native::ResultTypeState state;
  for (uint32_t i = (row.flags & kSkipFirstType) ? 1 : 0; i < f.n_inputs(); ++i) {
    if (f.entry.args[i].attr != nullptr) continue;
    const c10::IValue& v = f.args[i];
    if (v.isTensor() && v.toTensor().defined()) state = at::native::update_result_type_state(v.toTensor(), state);
    else if (v.isScalar() && f.entry.args[i].number) state = at::native::update_result_type_state(v.toScalar(), state);
  }
  c10::ScalarType type = at::native::result_type(state);
  const bool quotient = row.promote == Promote::kSame && row.op == FLHAL_OP_DIV && f.args[2].isNone();   // div without a rounding mode
  if ((row.promote == Promote::kFloat || quotient) && c10::isIntegralType(type, true))
    type = c10::typeMetaToScalarType(c10::get_default_dtype());
  return type;
}

bool infer(Frame& f) {
  if (C10_UNLIKELY(t_table == nullptr)) t_table = new Table;
  Table& table = *t_table;
  Key key;
  key.put(f.entry.id | static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())) << 32);
  const bool empty = has_empty_operand(f);
  const bool values = empty || (f.entry.row->flags & kValues) != 0;    // the CPU's verdict may depend on a number
  for (uint32_t i = 0; i < f.entry.n_args; ++i) key.put(f.args[i], values || !f.entry.args[i].number);

  // Strides of contiguous tensors are no part of the key, but those of 1 x 1 kernels tell channels_last.
  if (f.op() == FLHAL_OP_CONV2D) key.put(static_cast<uint64_t>(convolution_format(f)));

  Slot& slot = table.slots[key.hash() % kSlots];
  if (C10_LIKELY(!key.overflow && slot.key.size() == key.n &&
                 std::memcmp(slot.key.data(), key.words, key.n * sizeof(uint64_t)) == 0)) {
    f.spec = &slot.spec;
    f.compute = slot.spec.compute;
    return true;
  }
  Spec fresh;
  bool keep = false;
  if (!ask(f, &fresh, &keep)) return f.decline("torch's Meta kernel refuses what its CPU operator takes");
  if (empty && nothing_to_compute(f, fresh) && has_cpu_verdict(f)) ask_cpu(f);
  keep = keep && !key.overflow;
  f.spec = &fresh;
  fresh.compute = f.compute = compute_type(f);
  if (keep) {
    slot.key.assign(key.words, key.words + key.n);
    slot.spec = std::move(fresh);
    f.spec = &slot.spec;
  } else {
    table.uncached = std::move(fresh);
    f.spec = &table.uncached;
  }
  return true;
}

}  // namespace torch_fl
