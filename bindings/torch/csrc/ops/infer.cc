// csrc/ops/infer.cc: see infer.h.
#include "csrc/ops/infer.h"

#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <array>
#include <cstring>

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

c10::IValue meta_of(const c10::IValue& v) {
  if (v.isTensor()) return meta_of(v.toTensor());
  if (v.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : v.toTensorVector()) list.push_back(meta_of(t));
    return list;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : v.toOptionalTensorVector())
      list.push_back(t ? std::optional<at::Tensor>(meta_of(*t)) : std::nullopt);
    return list;
  }
  if (v.isGenerator()) return {};   // a Meta kernel draws nothing
  return v;
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
  torch::jit::Stack stack;
  stack.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    bool seen = false;   // x.add_(x): one tensor stays one tensor
    if (f.args[i].isTensor() && f.args[i].toTensor().defined())
      for (uint32_t j = 0; j < i && !seen; ++j)
        if (f.args[j].isTensor() && f.args[j].toTensor().is_same(f.args[i].toTensor())) {
          stack.push_back(c10::IValue(stack[j]));
          seen = true;
        }
    if (!seen) stack.push_back(meta_of(f.args[i]));
  }
  return stack;
}

// Runs the shape function. True when the answer may be remembered.
bool ask_meta(const Frame& f, Spec* spec) {
  const Entry& e = f.entry;
  at::AutoDispatchBelowADInplaceOrView below;
  const c10::KernelFunction* direct = shape_function(e.name);
  if (e.functional && direct == nullptr) {
    torch::jit::Stack arguments = meta_stack(f, e.first_out);
    e.functional->redispatchBoxed(c10::DispatchKeySet(kShapeKey), &arguments);
  }
  torch::jit::Stack stack = meta_stack(f, e.n_args);
  const bool by_shape = e.structured && e.form != Form::kOut;
  if (direct != nullptr)
    direct->callBoxed(e.op, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  else
    e.op.redispatchBoxed(c10::DispatchKeySet(by_shape ? kShapeKey : c10::DispatchKey::Meta), &stack);
  spec->outs.clear();
  bool keep = true;
  for (uint32_t i = 0; i < e.n_results; ++i) {
    spec->outs.push_back(spec_of(stack[i].isTensor() ? stack[i].toTensor() : at::Tensor()));
    if (e.form == Form::kOut && f.args[e.first_out + i].toTensor().sizes() != c10::IntArrayRef(spec->outs.back().sizes))
      keep = false;      // it was resized, perhaps with a warning: both shall happen each time
  }
  if (f.op() == FLHAL_OP_CONV2D) lay_out_convolution(f, spec);
  return keep;
}

}  // namespace

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

void infer(Frame& f) {
  if (C10_UNLIKELY(t_table == nullptr)) t_table = new Table;
  Table& table = *t_table;
  Key key;
  key.put(f.entry.id | static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype())) << 32);
  bool values = (f.entry.row->flags & kValues) != 0;
  for (uint32_t i = 0; i < f.entry.n_args; ++i) key.put(f.args[i], values || !f.entry.args[i].number);

  // Strides of contiguous tensors are no part of the key, but those of 1 x 1 kernels tell channels_last.
  if (f.op() == FLHAL_OP_CONV2D) key.put(static_cast<uint64_t>(convolution_format(f)));

  Slot& slot = table.slots[key.hash() % kSlots];
  if (C10_LIKELY(!key.overflow && slot.key.size() == key.n &&
                 std::memcmp(slot.key.data(), key.words, key.n * sizeof(uint64_t)) == 0)) {
    f.spec = &slot.spec;
    f.compute = slot.spec.compute;
    return;
  }
  Spec fresh;
  bool keep = ask_meta(f, &fresh) && !key.overflow;
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
}

}  // namespace torch_fl
