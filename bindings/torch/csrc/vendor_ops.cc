// csrc/vendor_ops.cc: operators that only a plugin knows, as operators of torch.
//
// Idea: a plugin writes schemas as torch does, so each becomes a real operator of the dispatcher: it shows in torch.ops, works with
// fake tensors and torch.library.register_autograd, and torch reads its arguments. What a schema cannot say is the results'
// shape: the functional form gives each result the broadcast shape and the promoted dtype of the tensors; an operator of another
// kind is called with out=.
#include "csrc/vendor_ops.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/library.h>

#include <set>

#include "csrc/call.h"
#include "csrc/device.h"
#include "csrc/factories.h"
#include "csrc/fallback.h"

namespace torch_fl {
namespace {

using c10::TypeKind;

bool is_tensor(const c10::TypePtr& type) {
  auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == TypeKind::TensorType;
}

bool is_attribute(const c10::TypePtr& type) {
  if (auto list = type->cast<c10::ListType>())
    return list->getElementType()->kind() == TypeKind::IntType || list->getElementType()->kind() == TypeKind::FloatType;
  const TypeKind kind = type->kind();
  return kind == TypeKind::IntType || kind == TypeKind::FloatType || kind == TypeKind::BoolType || kind == TypeKind::StringType;
}

void check_schema(const c10::FunctionSchema& schema, const std::string& text) {
  for (const c10::Argument& a : schema.arguments()) {
    TORCH_CHECK(is_tensor(a.type()) || is_attribute(a.type()), "the plugin's schema \"", text, "\" has the argument ", a.name(), " of type ",
                a.type()->str(), "; possible are Tensor, Tensor?, int, float, bool, int[], float[] and str");
    TORCH_CHECK(a.alias_info() == nullptr, "the plugin's schema \"", text, "\" writes its argument ", a.name(), "; its operators write results only");
  }
  TORCH_CHECK(!schema.returns().empty(), "the plugin's schema \"", text, "\" has no result");
  for (const c10::Argument& a : schema.returns())
    TORCH_CHECK(a.type()->kind() == TypeKind::TensorType, "the plugin's schema \"", text, "\" has a result that is no Tensor");
}

// The out= form of a functional schema: the same arguments, and a written one behind them for each result.
c10::FunctionSchema out_form(const c10::FunctionSchema& schema) {
  std::vector<c10::Argument> arguments = schema.arguments(), returns;
  const auto& results = schema.returns();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = results.size() == 1 ? "out" : results[i].name().empty() ? "out" + std::to_string(i) : results[i].name();
    const std::set<std::string> set = {"alias::" + std::string(1, static_cast<char>('a' + i % 26))};
    const c10::AliasInfo written(true, set, set);
    arguments.emplace_back(name, c10::TensorType::get(), std::nullopt, std::nullopt, true, written);
    returns.emplace_back("", c10::TensorType::get(), std::nullopt, std::nullopt, false, written);
  }
  return c10::FunctionSchema(schema.name(), "out", std::move(arguments), std::move(returns));
}

struct Form {
  uint32_t n_args, n_inputs, n_results;   // n_args counts out= arguments
  bool has_out;
};
Form form_of(const c10::FunctionSchema& schema) {
  Form f{static_cast<uint32_t>(schema.arguments().size()), 0, static_cast<uint32_t>(schema.returns().size()), false};
  for (const c10::Argument& a : schema.arguments()) (a.is_out() ? f.has_out = true : bool(++f.n_inputs));
  return f;
}

// The broadcast shape and the promoted dtype of all tensors.
struct Result {
  c10::SymDimVector sizes;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
};
Result infer(const c10::IValue* args, uint32_t n) {
  Result r;
  at::native::ResultTypeState types{};
  for (uint32_t i = 0; i < n; ++i) {
    if (!args[i].isTensor() || !args[i].toTensor().defined()) continue;
    const at::Tensor& t = args[i].toTensor();
    r.sizes = at::infer_size_symdimvector(r.sizes, t.sym_sizes());
    types = at::native::update_result_type_state(t, types);
  }
  r.dtype = at::native::result_type(types);
  return r;
}

void finish(torch::jit::Stack* stack, const Form& form, std::vector<at::Tensor> results) {
  torch::jit::drop(*stack, form.n_args);
  for (at::Tensor& t : results) stack->emplace_back(std::move(t));
}

void run_meta(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Form form = form_of(op.schema());
  const c10::IValue* args = stack->data() + stack->size() - form.n_args;
  std::vector<at::Tensor> results;
  const Result r = form.has_out ? Result() : infer(args, form.n_inputs);
  for (uint32_t i = 0; i < form.n_results; ++i)
    results.push_back(form.has_out ? args[form.n_inputs + i].toTensor()
                                   : at::empty_symint(r.sizes, at::TensorOptions().dtype(r.dtype).device(at::kMeta)));
  finish(stack, form, std::move(results));
}

c10::DeviceIndex device_of(const c10::IValue* args, uint32_t n) {
  c10::DeviceIndex index = -1;
  for (uint32_t i = 0; i < n; ++i)
    if (args[i].isTensor() && args[i].toTensor().defined() && args[i].toTensor().is_privateuseone() && index < 0)
      index = args[i].toTensor().device().index();
  for (uint32_t i = 0; i < n; ++i)
    if (args[i].isTensor() && args[i].toTensor().defined() && args[i].toTensor().device() != c10::Device(kDeviceType, index))
      raise_two_devices(c10::Device(kDeviceType, index), args[i].toTensor().device());
  return index;
}

void add_attribute(OpCall& call, uint32_t key, const c10::IValue& v) {
  if (v.isInt()) call.attr(key, v.toInt());
  else if (v.isBool()) call.attr(key, static_cast<int64_t>(v.toBool()));
  else if (v.isDouble()) call.attr(key, v.toDouble());
  else if (v.isString()) call.attr(key, v.toStringRef());
}

struct VendorKernel final : c10::OperatorKernel {
  explicit VendorKernel(std::string vendor_name) : name(std::move(vendor_name)) {}
  std::string name;

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const Form form = form_of(schema);
    const c10::IValue* args = stack->data() + stack->size() - form.n_args;
    const c10::DeviceIndex device = device_of(args, form.n_args);
    TORCH_CHECK(form.n_args + (form.has_out ? 0 : form.n_results) <= OpCall::kMaxTensors, schema.name(), ": more than ", OpCall::kMaxTensors, " operands");
    std::vector<at::Tensor> results;
    const Result r = form.has_out ? Result() : infer(args, form.n_inputs);
    for (uint32_t i = 0; i < form.n_results; ++i)
      results.push_back(form.has_out ? args[form.n_inputs + i].toTensor() : empty_contiguous(C10_AS_INTARRAYREF_SLOW(r.sizes), r.dtype, device));

    const AtenScope scope(&schema.name());
    OpCall call(0);
    call.name(name.c_str());
    for (const at::Tensor& t : results) call.out(t);
    std::vector<std::vector<int64_t>> ints;      // what attributes point to, until submit()
    std::vector<std::vector<double>> floats;
    ints.reserve(form.n_inputs), floats.reserve(form.n_inputs);
    for (uint32_t i = 0; i < form.n_inputs; ++i) {
      const c10::IValue& v = args[i];
      const c10::Argument& a = schema.arguments()[i];
      if (is_tensor(a.type())) call.in_or_absent(v.isTensor() ? v.toTensor() : at::Tensor());
      else if (a.default_value().has_value() && *a.default_value() == v) continue;
      else if (v.isIntList()) call.attr(i, c10::IntArrayRef(ints.emplace_back(v.toIntVector())));
      else if (v.isDoubleList()) call.attr(i, c10::ArrayRef<double>(floats.emplace_back(v.toDoubleVector())));
      else add_attribute(call, i, v);
    }
    if (!submit(call, device)) TORCH_CHECK_NOT_IMPLEMENTED(false, schema.name(), " did not run: ", decline_reason(), "; the operator is the plugin's own, so the CPU has none to stand in");
    finish(stack, form, std::move(results));
  }
};

}  // namespace

void define_vendor_op(const std::string& space, const std::string& op, const std::string& vendor_name, const std::string& text) {
  for (const char* torchs : {"aten", "prim", "prims"})
    TORCH_CHECK(space != torchs, "the plugin's operator \"", vendor_name, "\" lies in the namespace ", torchs, ", which is torch's own");
  auto& dispatcher = c10::Dispatcher::singleton();
  // Never destroyed: what it registers lives as long as the process.
  auto* library = new torch::Library(torch::Library::FRAGMENT, space, std::nullopt, __FILE__, __LINE__);
  auto add_kernel = [&](const std::string& overload) {
    auto handle = dispatcher.findSchema({space + "::" + op, overload});
    if (!handle || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) return;
    const std::string full = op + (overload.empty() ? "" : "." + overload);
    library->impl(full.c_str(), torch::dispatch(c10::DispatchKey::PrivateUse1,
                                                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<VendorKernel>(vendor_name))));
  };
  if (!dispatcher.findSchema({space + "::" + op, ""})) {
    const size_t open = text.find('(');
    TORCH_CHECK(open != std::string::npos, "the plugin's schema \"", text, "\" has no list of arguments");
    c10::FunctionSchema schema = torch::jit::parseSchema(space + "::" + op + text.substr(open), /*allow_typevars=*/false);
    check_schema(schema, text);
    for (c10::FunctionSchema form : {out_form(schema), schema}) {
      const std::string full = op + (form.overload_name().empty() ? "" : "." + form.overload_name());
      library->def(std::move(form));
      library->impl(full.c_str(), torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFromBoxedFunction<&run_meta>()));
    }
  }
  add_kernel("");
  add_kernel("out");
}

}  // namespace torch_fl
