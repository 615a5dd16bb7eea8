// conformance/areas/op_cases.cc: values that suit an op, and adding cases of the area op.
#include "areas/op_cases.h"

#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

namespace flhal::conformance {

std::vector<flhal_dtype> dtypes_of_row(const OpRow& row) {
  static const std::vector<flhal_dtype> floats = {FLHAL_F32, FLHAL_F64, FLHAL_F16, FLHAL_BF16}, integers = {FLHAL_I32, FLHAL_I64, FLHAL_U8};
  std::string which = row.dtypes;
  std::vector<flhal_dtype> all;
  if (which != "integral") all = floats;
  if (which != "float") all.insert(all.end(), integers.begin(), integers.end());
  if (which == "any" || which == "integral") all.push_back(FLHAL_BOOL);
  return all;
}
flhal_dtype output_dtype(const OpRow& row, flhal_dtype compute) {
  std::string which = row.out_dtype;
  if (which == "bool") return FLHAL_BOOL;
  if (which == "int64") return FLHAL_I64;
  if (which == "accumulate" && !is_float(compute)) return FLHAL_I64;
  return compute;
}
std::vector<std::string> input_names(const OpRow& row) {
  std::istringstream in(row.inputs);
  std::vector<std::string> names;
  for (std::string word; in >> word;) names.push_back(word.substr(0, word.find_first_of("?+=*")));
  return names;
}

double suitable_value(const std::string& op, size_t which, flhal_dtype dtype, uint64_t random) {
  static const std::set<std::string> positive = {"log", "log2", "log10", "sqrt", "rsqrt"}, unit = {"asin", "acos"},
                                     divides = {"div", "div_floor", "div_trunc", "remainder", "fmod"}, shifts = {"shift_left", "shift_right"};
  bool divisor = (which == 1 && divides.count(op)) || (which == 2 && op == "addcdiv") || op == "reciprocal";
  if (dtype == FLHAL_BOOL) return static_cast<double>(random & 1);
  if (op == "prod") return random % 9 == 0 ? 2 : 1;
  if (op == "pow" && which == 1) return static_cast<double>(random % 4);
  if (shifts.count(op) && which == 1) return static_cast<double>(random % 4);
  if (is_float(dtype)) {
    double v = static_cast<double>(random % 64) / 8 - 4;
    if (positive.count(op) || (op == "pow" && which == 0)) v = std::fabs(v) + 0.125;
    if (op == "log1p") v = std::fabs(v) - 0.5;
    if (unit.count(op)) v /= 4;
    if (divisor && v == 0) v = 1.5;
    return v;
  }
  double most = dtype == FLHAL_U8 ? 9 : 17, v = static_cast<double>(random % static_cast<uint64_t>(most)) - (dtype == FLHAL_U8 ? 0 : 8);
  if (op == "pow" || shifts.count(op)) v = static_cast<double>(random % 4);
  if (divisor && v == 0) v = 3;
  return v;
}

Tensor filled(Context& ctx, const std::string& op, size_t which, flhal_dtype dtype, const Sizes& sizes, Layout layout) {
  Tensor t(dtype, sizes, layout);
  t.fill_with([&](int64_t) { return suitable_value(op, which, dtype, ctx.random()()); });
  return t;
}

void add_op_case(const OpRow& row, flhal_dtype dtype, const std::string& variant, const std::string& duties,
                 std::function<void(Context&, OpCall&)> make) {
  std::string what = fmt::format("{} {} {}", row.name, dtype_name(dtype), variant);
  add_case(fmt::format("op.{}.{}.{}", row.name, dtype_name(dtype), variant), Profile::kOps, duties,
           [&row, dtype, what, make = std::move(make)](Context& ctx) {
             ctx.need_ops();
             OpCall call;
             call.row = &row;
             call.what = what;
             call.compute = dtype;
             make(ctx, call);
             run_and_compare(ctx, call);
           });
}

std::string duties_of_layout(Layout layout) {
  switch (layout) {
    case Layout::kDense: return kValueDuties;
    case Layout::kUnaligned: return "FLP-079 FLP-082 FLP-083";
    default: return "FLP-079 FLP-081 FLP-083";
  }
}

}  // namespace flhal::conformance
