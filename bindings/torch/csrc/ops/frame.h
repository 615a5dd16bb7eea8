// csrc/ops/frame.h: one boxed ATen call on its way to flhal: its arguments, what PyTorch says the results look like, and
// the results themselves.
//
// Idea: a row of aten_map.def names an overload, a handler and a flhal op. The in-place and out= overloads of the same
// operator are found by their schemas, so one row answers all forms: the frame makes results of a functional call, takes
// self of an in-place one and resizes those of out=, and the handler only fills results. Shapes, promotion, strides and
// argument errors come from PyTorch's Meta kernel of the very overload (infer.h), never from here.
// A handler returns false to decline; nothing the caller can see may have been written by then.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include "csrc/call.h"
#include "csrc/factories.h"

namespace torch_fl {

enum class Form : uint8_t { kFunctional, kInplace, kOut };

// How the arithmetic type of a call follows from its operands.
enum class Promote : uint8_t {
  kSame,     // torch.result_type of the operands
  kFloat,    // the same, integers become the default float type
  kResult,   // the dtype of result 0
  kSelf,     // the dtype of the first tensor
};

inline constexpr uint32_t kBoolResult = 1u << 0;     // functional results are bool
inline constexpr uint32_t kOpmathScalar = 1u << 1;   // numbers beside f16 and bf16 stay f32, as the CPU's kernels do
inline constexpr uint32_t kCpuScalars = 1u << 2;     // 0-dim CPU tensors may stand beside device tensors
inline constexpr uint32_t kSkipFirstType = 1u << 3;  // operand 0 takes no part in promotion (where's condition)
inline constexpr uint32_t kValues = 1u << 4;         // the result's shape or legality depends on the values of numbers
inline constexpr uint32_t kOwnResults = 1u << 5;     // the handler makes results itself (no Meta kernel is asked)
inline constexpr uint32_t kMayOverlap = 1u << 6;     // out= may overlap inputs as the CPU allows it
inline constexpr uint32_t kFast = 1u << 7;           // equal dense operands of one float type give a result just like them

inline constexpr uint32_t kNoOut = 1u << 8;          // PyTorch's Meta kernel of the out= form does not work
inline constexpr uint32_t kSelfOverlap = 1u << 9;    // the CPU writes tensors that overlap themselves (fill_)

// What the CPU's operator refuses: see cpu_limits.def.
inline constexpr uint32_t kUnsigned = 1u << 0;
inline constexpr uint32_t kBool = 1u << 1;
inline constexpr uint32_t kWhole = 1u << 2;
inline constexpr uint32_t kComplex = 1u << 3;
inline constexpr uint32_t kOtherOut = 1u << 4;
inline constexpr uint32_t kUnsignedOut = 1u << 5;
inline constexpr uint32_t kFloats = 1u << 6;
inline constexpr uint32_t kMixed = 1u << 7;

struct Frame;
using Handler = bool (*)(Frame&);

struct AttrRule {
  const char* argument = nullptr;   // schema name
  uint32_t key = 0;
  bool dynamic = false;             // left out when it is 1
};
struct Row {
  const char* aten;                 // functional overload, or the in-place one where there is no functional form
  Handler handler;
  uint32_t op;
  Promote promote;
  uint32_t flags;
  AttrRule attrs[4];
};

// What is remembered of one overload.
struct Entry {
  const Row* row;
  c10::OperatorHandle op;
  Form form;
  std::string name;                        // aten::add.Tensor
  uint32_t n_args = 0, n_results = 0;      // n_args counts out= arguments too
  uint32_t first_out = 0;                  // index of the first out= argument; n_args when none
  struct Arg {
    const AttrRule* attr = nullptr;
    bool number = false;                   // Scalar or float: its value does not decide the shape
  };
  c10::SmallVector<Arg, 12> args;
  uint64_t id = 0;
  uint32_t limits = 0;                     // of cpu_limits.def
  bool structured = false;                 // torch has a C++ shape function for it
  std::optional<c10::OperatorHandle> functional;   // of a structured out= form: the form whose arguments are checked

  Entry(const Row* row, c10::OperatorHandle op, Form form);
};

struct OutSpec {
  c10::SmallVector<int64_t, 5> sizes, strides;
  c10::ScalarType dtype = c10::ScalarType::Undefined;   // Undefined: the result is undefined
  bool contiguous = false;
};
struct Spec {
  c10::ScalarType compute = c10::ScalarType::Undefined;
  c10::SmallVector<OutSpec, 2> outs;
};

struct Frame {
  const Entry& entry;
  torch::jit::Stack* stack;
  c10::IValue* args;
  c10::DeviceIndex device = -1;
  c10::ScalarType compute = c10::ScalarType::Undefined;
  const Spec* spec = nullptr;              // nullptr on the fast path
  c10::SmallVector<at::Tensor, 3> results;
  at::Tensor wide_out;                     // out= that gets a copy of results[0], see take_out
  c10::SmallVector<at::Tensor, 1> kept;    // operands made for this call

  Frame(const Entry& e, torch::jit::Stack* s) : entry(e), stack(s), args(s->data() + s->size() - e.n_args) {}

  uint32_t op() const { return entry.row->op; }
  uint32_t n_inputs() const { return entry.first_out; }
  bool is_tensor(uint32_t i) const { return args[i].isTensor(); }
  const at::Tensor& tensor(uint32_t i) const {   // undefined for None
    static const at::Tensor none;
    return args[i].isTensor() ? args[i].toTensor() : none;
  }
  const at::Tensor& result(uint32_t i = 0) const { return results[i]; }
  // With in-place and out= forms a handler that needs several calls writes the first ones elsewhere.
  bool fresh_results() const { return entry.form == Form::kFunctional; }
  at::Tensor temporary(at::IntArrayRef sizes, at::ScalarType type) const { return empty_contiguous(sizes, type, device); }
  const at::Tensor& keep(at::Tensor t) {
    kept.push_back(std::move(t));
    return kept.back();
  }
  bool submit(const OpCall& call) const { return torch_fl::submit(call, device); }
  bool fill(const at::Tensor& t, const c10::Scalar& value) const;   // every element; nothing to do for an undefined or empty one
  bool decline(const char* static_reason) const {
    set_decline_reason(static_reason);
    return false;
  }
};

// The arithmetic type that flhal is told.
c10::ScalarType arithmetic_type(const Frame& f);
// Adds argument i as an input: a device tensor, a number of the host (rounded to the arithmetic type), or absent.
void add_operand(Frame& f, OpCall& call, uint32_t i);
void add_attrs(Frame& f, OpCall& call);
// A type that flhal's kernels compute in a wider one: what is not stored in it has not been rounded, and has not wrapped.
bool computed_wider(c10::ScalarType type);
// No number of `from` is cut, or rounded in a way that the arithmetic would not, when it becomes one of `type`.
bool holds(c10::ScalarType type, c10::ScalarType from);
// Raises the sentence of the CPU for a number that the dtype cannot hold.
void check_fits(const c10::Scalar& value, c10::ScalarType type);
// Adds argument i as a number that is stored as it is in a tensor of `type` (fill_.Scalar, masked_fill). One that does not fit is torch's
// error, so a tensor of a type that may not fit is read here, as the CPU's operator reads it.
void add_stored_number(Frame& f, OpCall& call, uint32_t i, c10::ScalarType type);
inline c10::DimVector dims_of(const c10::IValue& v) {
  if (v.isNone()) return {};
  if (v.isInt()) return c10::DimVector{v.toInt()};
  return v.toDimVector();
}

// Makes f.results for rows with kOwnResults, from the Meta kernel's answer. False: to be declined.
bool infer_results(Frame& f);

// The boxed kernel of an entry.
struct EntryKernel final : c10::OperatorKernel {
  explicit EntryKernel(std::unique_ptr<Entry> e) : entry(std::move(e)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  std::unique_ptr<Entry> entry;
};
void run_entry(const Entry& entry, torch::jit::Stack* stack);

// Handlers, by file.
bool pointwise(Frame& f);
bool pointwise_swapped(Frame& f);      // the first two operands change places (rsub)
bool masked_fill(Frame& f);
bool div_mode(Frame& f);
bool clamp_min(Frame& f);
bool clamp_max(Frame& f);
bool pow_any(Frame& f);
bool infinity_of_sign(Frame& f);
bool fill(Frame& f);
bool reduce(Frame& f);
bool reduce_all(Frame& f);
bool arg_reduce(Frame& f);
bool extremum_with_index(Frame& f);
bool variance(Frame& f);
bool deviation(Frame& f);
bool vector_norm(Frame& f);
bool cumsum(Frame& f);
bool mm(Frame& f);
bool addmm(Frame& f);
bool addmv(Frame& f);
bool mv(Frame& f);
bool dot(Frame& f);
bool softmax(Frame& f);
bool softmax_backward(Frame& f);
bool layer_norm(Frame& f);
bool layer_norm_backward(Frame& f);
bool batch_norm(Frame& f);
bool batch_norm_backward(Frame& f);
bool nll_loss(Frame& f);
bool nll_loss_backward(Frame& f);
bool mse_loss(Frame& f);
bool mse_loss_backward(Frame& f);
bool huber_loss(Frame& f);
bool huber_loss_backward(Frame& f);
bool smooth_l1_loss(Frame& f);
bool smooth_l1_loss_backward(Frame& f);
bool convolution(Frame& f);
bool convolution_backward(Frame& f);
bool max_pool2d(Frame& f);
bool max_pool2d_backward(Frame& f);
bool avg_pool2d(Frame& f);
bool adaptive_avg_pool2d(Frame& f);
bool embedding(Frame& f);
bool embedding_dense_backward(Frame& f);
bool index_select(Frame& f);
bool gather(Frame& f);
bool scatter(Frame& f);
bool index_add(Frame& f);
bool index_get(Frame& f);
bool index_put(Frame& f);
bool cat(Frame& f);
bool triangle(Frame& f);
bool arange(Frame& f);
bool uniform(Frame& f);
bool normal(Frame& f);
bool bernoulli(Frame& f);
bool random_int(Frame& f);
bool bernoulli_by(Frame& f);
bool randperm(Frame& f);
bool exponential(Frame& f);
bool native_dropout(Frame& f);
bool native_dropout_backward(Frame& f);

}  // namespace torch_fl
