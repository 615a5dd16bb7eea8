// src/dispatch/opset/matmul.cc: rows of the matmul family. Numbers 0x200 to 0x2ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef kRows[] = {
    row(Family::kMatmul, 0x200, "matmul",
        "alpha * a @ b + beta * c; rank 2 or more, leading dimensions broadcast, c broadcasts to out; c is not read when "
        "beta is 0")
        .out("out").in("a").in("b").maybe("c")
        .number_attr("alpha", 1.0, true).number_attr("beta", 1.0, true)
        .shape(infer_matmul, check_matmul).within(Tolerance::kAccumulated),
};

}  // namespace

Rows matmul_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
