// csrc/ops/registry.cc: registers every row of aten_map.def, with the in-place and out= overloads that belong to it.
//
// Idea: the forms of an operator are recognised by their schemas, by torch's own rule: the same arguments, self written (name
// with an underscore) or out= arguments added behind. So a row cannot forget a form, and a form cannot differ from its row.
#include "csrc/ops/registry.h"

#include <torch/library.h>

#include <cstring>
#include <map>
#include <unordered_map>

#include "csrc/ops/infer.h"

namespace torch_fl {
namespace {

#define FL_ATTR(argument, key) AttrRule{argument, FLHAL_ATTR_##key, false}
#define FL_DYN(argument, key) AttrRule{argument, FLHAL_ATTR_##key, true}
#define FL_ROW(aten, handler, op, promote, flags, ...) \
  Row{aten, &handler, FLHAL_OP_##op, Promote::promote, flags, {__VA_ARGS__}},
const Row kRows[] = {
#include "csrc/aten_map.def"
};
#undef FL_ROW
#undef FL_DYN
#undef FL_ATTR

struct Limit {
  const char* name;
  uint32_t refused;
};
const Limit kLimits[] = {
#define FL_LIMIT(name, refused) {name, refused},
#include "csrc/ops/cpu_limits.def"
#undef FL_LIMIT
};

uint32_t limits_of(const Row& row) {
  const std::string name(row.aten, std::strcspn(row.aten, "."));
  for (const Limit& limit : kLimits)
    if (name == limit.name) return limit.refused;
  return 0;
}

using Overloads = std::unordered_map<std::string, std::vector<c10::OperatorName>>;   // by name without overload

Overloads overloads_of_aten() {
  Overloads all;
  for (const c10::OperatorName& n : c10::Dispatcher::singleton().getAllOpNames())
    if (n.name.rfind("aten::", 0) == 0) all[n.name].push_back(n);
  return all;
}

std::map<std::string, const Entry*>& entries() {
  static std::map<std::string, const Entry*>* map = new std::map<std::string, const Entry*>;
  return *map;
}

bool same_argument(const c10::Argument& a, const c10::Argument& b) { return *a.type() == *b.type(); }

// `other` has `functional`'s arguments, then only out= ones.
bool is_out_form(const c10::FunctionSchema& functional, const c10::FunctionSchema& other) {
  const auto &a = functional.arguments(), &b = other.arguments();
  if (b.size() != a.size() + functional.returns().size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_argument(a[i], b[i]) || b[i].is_out() || a[i].name() != b[i].name()) return false;
  for (size_t i = a.size(); i < b.size(); ++i)
    if (!b[i].is_out()) return false;
  return true;
}

bool is_inplace_form(const c10::FunctionSchema& functional, const c10::FunctionSchema& other) {
  const auto &a = functional.arguments(), &b = other.arguments();
  if (a.size() != b.size() || a.empty() || !b[0].alias_info() || !b[0].alias_info()->isWrite()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_argument(a[i], b[i])) return false;
  return true;
}

Form form_of(const c10::FunctionSchema& schema) {
  for (const c10::Argument& a : schema.arguments())
    if (a.is_out()) return Form::kOut;
  const auto& args = schema.arguments();
  const bool writes_self = !args.empty() && args[0].alias_info() && args[0].alias_info()->isWrite();
  return writes_self ? Form::kInplace : Form::kFunctional;
}

void add(torch::Library& m, const Row& row, const c10::OperatorHandle& op, Form form,
         std::optional<c10::OperatorHandle> functional = std::nullopt) {
  auto entry = std::make_unique<Entry>(&row, op, form);
  entry->limits = limits_of(row);
  if (functional && form == Form::kOut) {
    if (shape_function(*functional) != nullptr || functional->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional))
      entry->functional = functional;
  }
  entries()[entry->name] = entry.get();
  if (is_hot(entry->name)) {
    entry.release();      // hot.cc registers the kernel; the entry serves its slow path
    return;
  }
  std::string name = entry->name;
  m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<EntryKernel>(std::move(entry))));
}

void register_rows(torch::Library& m) {
  const Overloads all = overloads_of_aten();
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const Row& row : kRows) {
    std::string name = std::string("aten::") + row.aten, overload;
    if (size_t dot = name.find('.'); dot != std::string::npos) {
      overload = name.substr(dot + 1);
      name.resize(dot);
    }
    c10::OperatorHandle op = dispatcher.findSchemaOrThrow(name.c_str(), overload.c_str());
    Form form = form_of(op.schema());
    add(m, row, op, form);
    if (form != Form::kFunctional) continue;
    for (const std::string& family : {name, name + "_"}) {
      auto found = all.find(family);
      if (found == all.end()) continue;
      for (const c10::OperatorName& other : found->second) {
        std::optional<c10::OperatorHandle> handle = dispatcher.findSchema(other);
        if (!handle || !handle->hasKernelForDispatchKey(c10::DispatchKey::Meta)) continue;
        const bool inplace = family.size() > name.size();
        if (!inplace && (row.flags & kNoOut)) continue;
        // torch writes these out= forms itself: functional form, checks, copy.
        if (!inplace && handle->hasTag(at::Tag::generated)) continue;
        if (inplace ? is_inplace_form(op.schema(), handle->schema()) : is_out_form(op.schema(), handle->schema()))
          add(m, row, *handle, inplace ? Form::kInplace : Form::kOut, op);
      }
    }
  }
}

}  // namespace

const Entry* find_entry(const std::string& name) {
  auto found = entries().find(name);
  return found == entries().end() ? nullptr : found->second;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { register_rows(m); }

}  // namespace torch_fl
