// conformance/areas/op_cases.h: what the files of the op area share: dtypes of a row, values that suit an op, adding a case.
#pragma once

#include <map>

#include "areas/op_call.h"

namespace flhal::conformance {

std::vector<flhal_dtype> dtypes_of_row(const OpRow& row);
flhal_dtype output_dtype(const OpRow& row, flhal_dtype compute);
// "x", "a", "b" ...: the names of the row's inputs, without their signs.
std::vector<std::string> input_names(const OpRow& row);

// Numbers that every dtype of the class holds exactly and that the op has a value for; operand `which` of the op.
double suitable_value(const std::string& op, size_t which, flhal_dtype dtype, uint64_t random);
// A tensor of such numbers.
Tensor filled(Context& ctx, const std::string& op, size_t which, flhal_dtype dtype, const Sizes& sizes, Layout layout = Layout::kDense);

// Adds op.<row>.<dtype>.<variant>; `make` fills the call, whose row, compute type and text are set.
void add_op_case(const OpRow& row, flhal_dtype dtype, const std::string& variant, const std::string& duties,
                 std::function<void(Context&, OpCall&)> make);
inline constexpr const char* kValueDuties = "FLP-079 FLP-080 FLP-083";
std::string duties_of_layout(Layout layout);

}  // namespace flhal::conformance
