// src/dispatch/opset/json.cc: every row as one JSON object.
#include "dispatch/opset/json.h"

#include "dispatch/opset/names.h"
#include "dispatch/opset/opset.h"

namespace flhal::opset {

std::string json() {
  std::string text;
  auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format(format, std::forward<Args>(args)...);
  };
  add("{{\"op_set_minor\": {}, \"ops\": [", kOpSetMinor);
  bool first = true;
  for (uint32_t f = 0; f < kFamilies; ++f) {
  for (const OpDef& d : family_rows(f)) {
    add("{}\n  {{\"name\": \"{}\", \"number\": {}, \"family\": \"{}\", \"formula\": \"{}\", \"operands\": [",
               first ? "" : ",", d.name, d.number, family_name(d.family), d.formula);
    first = false;
    for (uint32_t i = 0; i < uint32_t(d.n_outputs) + d.n_inputs; ++i) {
      const Operand& o = d.operands[i];
      const char* role = o.role == Role::kOut ? "out" : o.role == Role::kInOut ? "inout" : "in";
      add("{}{{\"name\": \"{}\", \"role\": \"{}\", \"optional\": {}, \"variadic\": {}, \"written\": {}}}",
                 i ? ", " : "", o.name, role, o.optional, o.variadic, o.written || o.role != Role::kIn);
    }
    add("], \"attributes\": [");
    for (uint32_t i = 0; i < d.n_attrs; ++i) {
      const Attr& a = d.attrs[i];
      std::string value = default_text(a);
      add("{}{{\"name\": \"{}\", \"key\": {}, \"kind\": \"{}\", \"dynamic\": {}, \"default\": {}}}",
                 i ? ", " : "", a.name, attr_key(d.number, a.number), kind_name(a.kind), a.dynamic,
                 value.empty() ? "null" : value);
    }
    add("], \"compute_dtypes\": \"{}\", \"out_dtype\": \"{}\", \"in_place\": {}, \"broadcasts\": {}, "
               "\"random\": {}, \"tolerance\": \"{}\"}}",
               dtypes_name(d.dtypes), out_dtype_name(d.out_dtype), d.alias == Alias::kAnyInput, d.pointwise, d.random,
               tolerance_name(d.tolerance));
  }
  }
  add("\n]}}\n");
  return text;
}

}  // namespace flhal::opset
