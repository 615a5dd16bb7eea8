// src/dispatch/opset/reduce.cc: rows of the reduce family. The output has the input's rank; reduced dimensions have size
// 1 there, so no list of dimensions is needed. Numbers 0x100 to 0x1ff.
#include <limits>

#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr OpDef reduce(uint32_t number, const char* name, const char* formula) {
  return row(Family::kReduce, number, name, formula).out("out").in("x").shape(infer_reduce, check_reduce)
      .within(Tolerance::kAccumulated);
}

constexpr OpDef kRows[] = {
    reduce(0x100, "sum", "sum of x; integers and bool accumulate in int64").of(Dtypes::kAny)
        .gives(OutDtype::kAccumulate).when_empty(0),
    reduce(0x101, "mean", "sum(x) / n").of(Dtypes::kFloat).when_empty(kNan),
    reduce(0x102, "prod", "product of x").of(Dtypes::kAny).gives(OutDtype::kAccumulate).when_empty(1),
    reduce(0x103, "amax", "largest; NaN wins; an empty x is an error").of(Dtypes::kAny).within(Tolerance::kExact),
    reduce(0x104, "amin", "smallest; NaN wins; an empty x is an error").of(Dtypes::kAny).within(Tolerance::kExact),
    reduce(0x105, "any", "some x != 0").of(Dtypes::kAny).gives(OutDtype::kBool).within(Tolerance::kExact).when_empty(0),
    reduce(0x106, "all", "every x != 0").of(Dtypes::kAny).gives(OutDtype::kBool).within(Tolerance::kExact).when_empty(1),
    reduce(0x107, "norm2", "sqrt(sum(|x|^2))").of(Dtypes::kFloat).when_empty(0),
    reduce(0x108, "argmax", "first index of the largest along the reduced dimension; linear when all are reduced")
        .of(Dtypes::kReal).gives(OutDtype::kInt64).within(Tolerance::kExact).shape(infer_reduce, check_arg_reduce),
    reduce(0x109, "argmin", "first index of the smallest along the reduced dimension; linear when all are reduced")
        .of(Dtypes::kReal).gives(OutDtype::kInt64).within(Tolerance::kExact).shape(infer_reduce, check_arg_reduce),
    reduce(0x10a, "var", "sum(|x - mean|^2) / max(0, n - correction)").of(Dtypes::kFloat)
        .number_attr("correction", 1.0).when_empty(kNan),
    row(Family::kReduce, 0x120, "cumsum", "running sum along dim").out("out").in("x").integer("dim", 0)
        .of(Dtypes::kAny).gives(OutDtype::kAccumulate).within(Tolerance::kAccumulated)
        .shape(infer_along, check_by_infer),
};

}  // namespace

Rows reduce_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
