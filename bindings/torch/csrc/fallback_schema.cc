// csrc/fallback_schema.cc: what the fallback knows of an operator.
//
// Idea: the schema tells almost all: which arguments are written (alias sets), which results are arguments, which are views.
// Two short tables hold what schemas do not say.
// Threads: the map only grows; entries never move nor die, also when a Python library takes its operators back.
#include "fallback_schema.h"

#include <flhal/flhal.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "config.h"
#include "device.h"

namespace torch_fl {
namespace {

// Arguments written though the schema says read-only.
struct UndeclaredWrite {
  const char* op;
  const char* argument;
};
constexpr UndeclaredWrite kUndeclaredWrites[] = {
    {"aten::native_batch_norm", "running_mean"},       {"aten::native_batch_norm", "running_var"},
    {"aten::batch_norm_update_stats", "running_mean"}, {"aten::batch_norm_update_stats", "running_var"},
};

// Arguments that torch itself wants or allows on the CPU beside device tensors.
constexpr UndeclaredWrite kCpuArguments[] = {
    {"aten::index", "indices"},           {"aten::index_put", "indices"},          {"aten::index_put_", "indices"},
    {"aten::_index_put_impl_", "indices"}, {"aten::_index_put_impl", "indices"},    {"aten::_unsafe_index", "indices"},
    {"aten::_unsafe_index_put", "indices"}, {"aten::_pack_padded_sequence", "lengths"},
    {"aten::_pack_padded_sequence_backward", "batch_sizes"},
};

bool listed(const UndeclaredWrite* begin, const UndeclaredWrite* end, const std::string& op, const std::string& argument) {
  for (; begin != end; ++begin) {
    if (op == begin->op && argument == begin->argument) return true;
  }
  return false;
}

bool holds_tensors(const c10::TypePtr& type) {
  const auto tensor = c10::TensorType::get();
  if (type->isSubtypeOf(*tensor)) return true;
  if (auto optional = type->cast<c10::OptionalType>()) return holds_tensors(optional->getElementType());
  if (auto list = type->cast<c10::ListType>()) return holds_tensors(list->getElementType());
  return false;
}

bool is_generator(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::GeneratorType) return true;
  auto optional = type->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

void read_schema(const c10::OperatorHandle& op, OpInfo& info) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& base = schema.name();
  info.op = op.operator_name();
  info.name = base + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  const auto& arguments = schema.arguments();
  bool any_tensor = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    const bool tensors = holds_tensors(argument.type());
    any_tensor = any_tensor || tensors;
    const bool declared = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    info.written.push_back(tensors && (declared || listed(std::begin(kUndeclaredWrites), std::end(kUndeclaredWrites), base, argument.name())));
    info.may_be_cpu.push_back(listed(std::begin(kCpuArguments), std::end(kCpuArguments), base, argument.name()));
    if (is_generator(argument.type())) info.generator_arg = static_cast<int>(i);
  }
  bool view = false;
  for (const c10::Argument& result : schema.returns()) {
    int same = -1;
    if (const c10::AliasInfo* alias = result.alias_info()) {
      if (!alias->isWrite()) {
        view = true;
      } else {
        for (size_t i = 0; i < arguments.size() && same < 0; ++i) {
          const c10::AliasInfo* other = arguments[i].alias_info();
          if (other != nullptr && other->isWrite() && other->beforeSets() == alias->beforeSets()) same = static_cast<int>(i);
        }
      }
    }
    info.returns_arg.push_back(same);
  }
  // The CPU's flash attention carries the tag and refuses every dropout: it draws nothing.
  const bool draws = op.hasTag(at::Tag::nondeterministic_seeded) && base != "aten::_scaled_dot_product_flash_attention_for_cpu";
  const bool collective = base.rfind("c10d::", 0) == 0 || base.rfind("_c10d_functional", 0) == 0;
  if (collective) {
    info.refusal = Refusal::kAsync;
  } else if (view) {
    info.refusal = Refusal::kView;
  } else if (draws && info.generator_arg < 0) {
    info.refusal = Refusal::kDraws;
  } else if (!any_tensor) {
    info.refusal = Refusal::kFactory;
  } else if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    info.refusal = Refusal::kNoCpuKernel;
  }
}

}  // namespace

const OpInfo& op_info(const c10::OperatorHandle& op) {
  static std::shared_mutex mutex;
  static auto* known = new std::unordered_map<const void*, OpInfo*>();
  // The schema's address is quick to find, but another operator's later when a library unregisters: compare the name too.
  const c10::FunctionSchema& schema = op.schema();
  const void* key = &schema;
  const auto current = [&](const OpInfo& info) {
    return info.op == op.operator_name() && info.written.size() == schema.arguments().size() &&
           info.returns_arg.size() == schema.returns().size();
  };
  {
    std::shared_lock lock(mutex);
    auto found = known->find(key);
    if (found != known->end() && current(*found->second)) return *found->second;
  }
  auto made = std::make_unique<OpInfo>();
  read_schema(op, *made);
  std::unique_lock lock(mutex);
  OpInfo*& place = (*known)[key];
  if (place == nullptr || !current(*place)) place = made.release();
  return *place;
}

void raise_refusal(const OpInfo& info, const char* reason) {
  const char* why = "";
  switch (info.refusal) {
    case Refusal::kView:
      why = "its result is a view of an argument, which a CPU copy cannot be";
      break;
    case Refusal::kFactory:
      why = "it creates tensors from nothing";
      break;
    case Refusal::kAsync:
      why = "it may finish after it returns; move the tensors to the CPU for it, or use a process group for this device";
      break;
    case Refusal::kDraws:
      why = "it draws from the CPU's default generator, which no seed of this device governs and which other threads are using; "
            "draw on the CPU and move the result, or give the operator a Generator argument";
      break;
    case Refusal::kNoCpuKernel:
      why = "PyTorch has no CPU kernel for it either";
      break;
    case Refusal::kNone:
      why = "unknown";
      break;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, info.name, ": ", kDeviceName, " has no kernel for it", reason[0] != '\0' ? " (" : "", reason,
                              reason[0] != '\0' ? ")" : "", " and it never falls back to the CPU (fallback policy ",
                              config_text("fallback_policy"), "): ", why);
}

}  // namespace torch_fl
