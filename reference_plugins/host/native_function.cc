// reference_plugins/host/native_function.cc: signatures, and calling by them.
#include "native_function.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace flhal::host {
namespace {

using Kind = NativeFunction::Kind;

struct TypeRow {
  const char* name;
  ffi_type* type;
  Kind kind;
};
const TypeRow kTypes[] = {
    {"i8", &ffi_type_sint8, Kind::kValue},    {"u8", &ffi_type_uint8, Kind::kValue},   {"i16", &ffi_type_sint16, Kind::kValue},
    {"u16", &ffi_type_uint16, Kind::kValue},  {"i32", &ffi_type_sint32, Kind::kValue}, {"u32", &ffi_type_uint32, Kind::kValue},
    {"i64", &ffi_type_sint64, Kind::kValue},  {"u64", &ffi_type_uint64, Kind::kValue}, {"f32", &ffi_type_float, Kind::kValue},
    {"f64", &ffi_type_double, Kind::kValue},  {"ptr", &ffi_type_pointer, Kind::kMemory},
    {"first", &ffi_type_uint64, Kind::kFirst}, {"count", &ffi_type_uint64, Kind::kCount},
};

std::string type_names() {
  std::string names;
  for (const TypeRow& row : kTypes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view name) {
  auto legal = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && std::all_of(name.begin(), name.end(), legal);
}

}  // namespace

std::string NativeFunction::parse(std::string_view signature, std::unique_ptr<NativeFunction>* out) {
  signature = trimmed(signature);
  auto refuse = [&](const std::string& why) {
    return fmt::format("the signature \"{}\" {}; write it as \"saxpy(f32, ptr, ptr, first, count)\"", signature.substr(0, 200), why);
  };
  const size_t open = signature.find('(');
  if (open == std::string_view::npos || signature.back() != ')') return refuse("has no list of types in parentheses");
  std::unique_ptr<NativeFunction> f(new NativeFunction);
  f->name_ = trimmed(signature.substr(0, open));
  if (!is_name(f->name_)) return refuse("does not begin with the name of a C function");
  std::string_view list = signature.substr(open + 1, signature.size() - open - 2);
  int ranges = 0;
  while (!trimmed(list).empty() || !f->parameters_.empty()) {
    const size_t comma = list.find(',');
    const std::string_view word = trimmed(list.substr(0, comma));
    auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return word == r.name; });
    if (row == std::end(kTypes)) return refuse(fmt::format("has the type \"{}\"; valid are {}", word.substr(0, 40), type_names()));
    if (f->parameters_.size() == kMaxParameters) return refuse(fmt::format("has more than {} types", kMaxParameters));
    const bool range = row->kind == Kind::kFirst || row->kind == Kind::kCount;
    if (range) ranges += row->kind == Kind::kFirst ? 1 : 16;
    else ++f->n_arguments_;
    f->parameters_.push_back({row->kind, static_cast<uint32_t>(row->type->size), row->name});
    f->types_.push_back(row->type);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  if (ranges != 0 && ranges != 17) return refuse("needs first and count once each, or neither");
  f->takes_ranges_ = ranges != 0;
  if (ffi_prep_cif(&f->cif_, FFI_DEFAULT_ABI, static_cast<unsigned>(f->types_.size()), &ffi_type_void, f->types_.data()) != FFI_OK)
    return refuse("cannot be called on this processor");
  *out = std::move(f);
  return "";
}

void NativeFunction::call(const void* const* argv, uint64_t first, uint64_t count) const {
  void* values[kMaxParameters];           // libffi wants the address of each argument
  const void* memory[kMaxParameters];
  uint32_t next = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    switch (parameters_[i].kind) {
      case Kind::kValue: values[i] = const_cast<void*>(argv[next++]); break;
      case Kind::kMemory: memory[i] = argv[next++], values[i] = &memory[i]; break;
      case Kind::kFirst: values[i] = &first; break;
      case Kind::kCount: values[i] = &count; break;
    }
  }
  ffi_call(const_cast<ffi_cif*>(&cif_), reinterpret_cast<void (*)()>(code_), nullptr, values);
}

}  // namespace flhal::host
