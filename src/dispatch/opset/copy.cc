// src/dispatch/opset/copy.cc: rows that move or make elements without arithmetic. Numbers 0x700 to 0x7ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef exact(uint32_t number, const char* name, const char* formula) {
  return row(Family::kCopy, number, name, formula).of(Dtypes::kAny).within(Tolerance::kExact);
}
constexpr OpDef pointwise(OpDef d) {
  d.alias = Alias::kAnyInput;
  d.pointwise = true;
  return d;
}

constexpr OpDef kRows[] = {
    pointwise(exact(0x700, "copy", "x, converted; strided; any pair of dtypes").out("out").in("x")
                  .shape(infer_broadcast, check_broadcast)),
    pointwise(exact(0x701, "fill", "value everywhere; the value is usually a host scalar").out("out").in("value")
                  .gives(OutDtype::kCaller).shape(infer_free, check_broadcast)),
    exact(0x702, "arange", "start + i * step").out("out").number_attr("start", 0.0, true, "INT or FLOAT")
        .number_attr("step", 1.0, true, "INT or FLOAT").gives(OutDtype::kCaller).within(Tolerance::kRounded)
        .shape(infer_free, check_free),
    exact(0x703, "cat", "inputs one after the other along dim").out("out").many("inputs").integer("dim", 0)
        .shape(infer_cat, check_by_infer),
    exact(0x704, "tril", "column <= row + diagonal ? x : 0").out("out").in("x").integer("diagonal", 0)
        .shape(infer_matrix, check_by_infer),
    exact(0x705, "triu", "column >= row + diagonal ? x : 0").out("out").in("x").integer("diagonal", 0)
        .shape(infer_matrix, check_by_infer),
};

}  // namespace

Rows copy_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
