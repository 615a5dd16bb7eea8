// csrc/ops/hot.cc: the few overloads whose cost a small model feels, unboxed and with nothing in between.
//
// Idea: equal dense operands of one float type need no TensorIterator, no Meta kernel, no boxing: make the result, write the
// call, run it. Whatever else comes goes to the overload's entry (frame.cc), which knows everything.
// [[gnu::flatten]]: at -O2 the compiler leaves torch's own small functions (sizes, device, is_contiguous) as calls.
// Autograd: these kernels also stand at AutogradPrivateUse1. They call straight through only when no input has autograd meta
// and nothing but our backend lies below ADInplaceOrView (else jvp and functional tensors would be passed by); otherwise they
// go the usual way, by way of AutogradOther, where torch's own autograd kernels of outside backends live. In place,
// bump_version() comes first: it is also what refuses writes to inference tensors. A refused call takes it back.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sub_ops.h>
#include <torch/library.h>

#include "csrc/ops/alike.h"
#include "csrc/ops/registry.h"

namespace torch_fl {
namespace {

constexpr const char* kHot[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor",
                                "aten::add_.Tensor", "aten::sub_.Tensor", "aten::mul_.Tensor", "aten::div_.Tensor",
                                "aten::relu", "aten::relu_"};

using c10::TensorImpl;

template <class... Args>
[[gnu::noinline]] torch::jit::Stack boxed(const Entry* entry, Args&&... args) {
  torch::jit::Stack stack;
  stack.reserve(sizeof...(Args));
  (stack.emplace_back(std::forward<Args>(args)), ...);
  run_entry(*entry, &stack);
  return stack;
}

template <class Op>
const Entry* entry_of() {
  static const Entry* entry = [] {
    std::string name = Op::name;
    if (Op::overload_name[0] != 0) name += std::string(".") + Op::overload_name;
    const Entry* e = find_entry(name);
    TORCH_INTERNAL_ASSERT(e != nullptr, "no row for ", name);
    return e;
  }();
  return entry;
}

// out = op(a, alpha * b); all three are alike. False for factors that need more thought, too.
[[gnu::noinline]] bool run_scaled(uint32_t op, uint32_t alpha_key, const TensorImpl* out, const TensorImpl* a, const TensorImpl* b,
                                  const at::Scalar& alpha) {
  if (alpha.isComplex() || alpha.isBoolean()) return false;
  OpCall call(op, c10::typeMetaToScalarType(a->dtype()));
  call.out(out);
  call.in_like_first(a);
  call.in_like_first(b);
  call.attr(alpha_key, alpha, true);
  return submit(call, a->device().index());
}

template <uint32_t kOp, uint32_t kAlpha>
bool run_pair(const TensorImpl* out, const TensorImpl* a, const TensorImpl* b, const at::Scalar& alpha) {
  return C10_LIKELY(alpha.equal<int64_t>(1)) ? run_alike(kOp, out, a, b) : run_scaled(kOp, kAlpha, out, a, b, alpha);
}

template <class Op, uint32_t kOp, uint32_t kAlpha>
[[gnu::flatten]] at::Tensor pair_with_alpha(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  const TensorImpl *a = self.unsafeGetTensorImpl(), *b = other.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(a) && alike(a, b))) {
    at::Tensor out = empty_like_model(a);
    if (C10_LIKELY((run_pair<kOp, kAlpha>(out.unsafeGetTensorImpl(), a, b, alpha)))) return out;
  }
  return boxed(entry_of<Op>(), self, other, alpha)[0].toTensor();
}

template <class Op, uint32_t kOp>
[[gnu::flatten]] at::Tensor pair(const at::Tensor& self, const at::Tensor& other) {
  const TensorImpl *a = self.unsafeGetTensorImpl(), *b = other.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(a) && alike(a, b))) {
    at::Tensor out = empty_like_model(a);
    if (C10_LIKELY(run_alike(kOp, out.unsafeGetTensorImpl(), a, b))) return out;
  }
  return boxed(entry_of<Op>(), self, other)[0].toTensor();
}

template <class Op, uint32_t kOp, uint32_t kAlpha>
[[gnu::flatten]] at::Tensor& pair_with_alpha_(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  TensorImpl *a = self.unsafeGetTensorImpl(), *b = other.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(a) && alike(a, b) && !overlap_in_part(a, b)) && C10_LIKELY((run_pair<kOp, kAlpha>(a, a, b, alpha))))
    return self;
  boxed(entry_of<Op>(), self, other, alpha);
  return self;
}

template <class Op, uint32_t kOp>
[[gnu::flatten]] at::Tensor& pair_(at::Tensor& self, const at::Tensor& other) {
  TensorImpl *a = self.unsafeGetTensorImpl(), *b = other.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(a) && alike(a, b) && !overlap_in_part(a, b)) && C10_LIKELY(run_alike(kOp, a, a, b))) return self;
  boxed(entry_of<Op>(), self, other);
  return self;
}

[[gnu::flatten]] at::Tensor relu(const at::Tensor& self) {
  const TensorImpl* x = self.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(x))) {
    at::Tensor out = empty_like_model(x);
    if (C10_LIKELY(run_alike(FLHAL_OP_RELU, out.unsafeGetTensorImpl(), x))) return out;
  }
  return boxed(entry_of<at::_ops::relu>(), self)[0].toTensor();
}
[[gnu::flatten]] at::Tensor& relu_(at::Tensor& self) {
  const TensorImpl* x = self.unsafeGetTensorImpl();
  if (C10_LIKELY(plain(x)) && C10_LIKELY(run_alike(FLHAL_OP_RELU, x, x))) return self;
  boxed(entry_of<at::_ops::relu_>(), self);
  return self;
}

// ---- autograd ----

// Backend bits alone, below ADInplaceOrView: nothing else wants to see the call. A number of the CPU may stand beside.
bool ours_alone(c10::DispatchKeySet keys) {
  constexpr c10::DispatchKeySet ours(c10::DispatchKey::PrivateUse1);
  return (keys & c10::after_ADInplaceOrView_keyset) == ours;
}
bool untracked(const at::Tensor& t) { return t.unsafeGetTensorImpl()->autograd_meta() == nullptr; }
// Without PythonDispatcher, which has been asked already: torch.compile's tracing turns it on, and it would choose this kernel
// again, for ever. Keys below autograd leave it out in the same way.
c10::DispatchKeySet usual_way(c10::DispatchKeySet keys) {
  return keys.remove(c10::DispatchKey::AutogradPrivateUse1).remove(c10::DispatchKey::PythonDispatcher) |
         c10::DispatchKeySet(c10::DispatchKey::AutogradOther);
}

template <class Op, auto kKernel>
at::Tensor pair_with_alpha_autograd(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& other,
                                    const at::Scalar& alpha) {
  if (C10_LIKELY(untracked(self) && untracked(other) && ours_alone(keys))) return kKernel(self, other, alpha);
  return Op::redispatch(usual_way(keys), self, other, alpha);
}
template <class Op, auto kKernel>
at::Tensor pair_autograd(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& other) {
  if (C10_LIKELY(untracked(self) && untracked(other) && ours_alone(keys))) return kKernel(self, other);
  return Op::redispatch(usual_way(keys), self, other);
}
// The version counts one write more, unless the call is refused: then nothing was written, and autograd would refuse what was saved.
class Write {
 public:
  explicit Write(TensorImpl* self) : self_(self), before_(self->is_inference() ? 0 : self->version_counter().current_version()) {
    self->bump_version();
  }
  ~Write() {
    if (done_) return;
    c10::VariableVersion counter = self_->version_counter();
    counter.set_version(before_);
  }
  Write(const Write&) = delete;
  at::Tensor& done(at::Tensor& result) {
    done_ = true;
    return result;
  }

 private:
  TensorImpl* self_;
  uint32_t before_;
  bool done_ = false;
};

template <class Op, auto kKernel>
at::Tensor& pair_with_alpha_autograd_(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (C10_LIKELY(untracked(self) && untracked(other) && ours_alone(keys))) {
    Write write(self.unsafeGetTensorImpl());
    return write.done(kKernel(self, other, alpha));
  }
  return Op::redispatch(usual_way(keys), self, other, alpha);
}
template <class Op, auto kKernel>
at::Tensor& pair_autograd_(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& other) {
  if (C10_LIKELY(untracked(self) && untracked(other) && ours_alone(keys))) {
    Write write(self.unsafeGetTensorImpl());
    return write.done(kKernel(self, other));
  }
  return Op::redispatch(usual_way(keys), self, other);
}

namespace o = at::_ops;
constexpr auto add = &pair_with_alpha<o::add_Tensor, FLHAL_OP_ADD, FLHAL_ATTR_ADD_ALPHA>;
constexpr auto sub = &pair_with_alpha<o::sub_Tensor, FLHAL_OP_SUB, FLHAL_ATTR_SUB_ALPHA>;
constexpr auto mul = &pair<o::mul_Tensor, FLHAL_OP_MUL>;
constexpr auto div = &pair<o::div_Tensor, FLHAL_OP_DIV>;
constexpr auto add_ = &pair_with_alpha_<o::add__Tensor, FLHAL_OP_ADD, FLHAL_ATTR_ADD_ALPHA>;
constexpr auto sub_ = &pair_with_alpha_<o::sub__Tensor, FLHAL_OP_SUB, FLHAL_ATTR_SUB_ALPHA>;
constexpr auto mul_ = &pair_<o::mul__Tensor, FLHAL_OP_MUL>;
constexpr auto div_ = &pair_<o::div__Tensor, FLHAL_OP_DIV>;

}  // namespace

bool is_hot(const std::string& name) {
  for (const char* hot : kHot)
    if (name == hot) return true;
  return false;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", TORCH_FN(add));
  m.impl("sub.Tensor", TORCH_FN(sub));
  m.impl("mul.Tensor", TORCH_FN(mul));
  m.impl("div.Tensor", TORCH_FN(div));
  m.impl("add_.Tensor", TORCH_FN(add_));
  m.impl("sub_.Tensor", TORCH_FN(sub_));
  m.impl("mul_.Tensor", TORCH_FN(mul_));
  m.impl("div_.Tensor", TORCH_FN(div_));
  m.impl("relu", TORCH_FN(relu));
  m.impl("relu_", TORCH_FN(relu_));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("add.Tensor", TORCH_FN((pair_with_alpha_autograd<o::add_Tensor, add>)));
  m.impl("sub.Tensor", TORCH_FN((pair_with_alpha_autograd<o::sub_Tensor, sub>)));
  m.impl("mul.Tensor", TORCH_FN((pair_autograd<o::mul_Tensor, mul>)));
  m.impl("div.Tensor", TORCH_FN((pair_autograd<o::div_Tensor, div>)));
  m.impl("add_.Tensor", TORCH_FN((pair_with_alpha_autograd_<o::add__Tensor, add_>)));
  m.impl("sub_.Tensor", TORCH_FN((pair_with_alpha_autograd_<o::sub__Tensor, sub_>)));
  m.impl("mul_.Tensor", TORCH_FN((pair_autograd_<o::mul__Tensor, mul_>)));
  m.impl("div_.Tensor", TORCH_FN((pair_autograd_<o::div__Tensor, div_>)));
}

}  // namespace torch_fl
