// src/dispatch/opset/index.cc: rows that read or write where an index tensor says. Index tensors are int64 or int32;
// values are checked by the kernel where the chip can, never by core. Numbers 0x500 to 0x5ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef index_row(uint32_t number, const char* name, const char* formula) {
  return row(Family::kIndex, number, name, formula).of(Dtypes::kAny).within(Tolerance::kExact).integer("dim", 0);
}

constexpr OpDef kRows[] = {
    index_row(0x500, "index_select",
              "out[.., j.., ..] = x[.., index[j..], ..]; sizes x[:dim] + index's + x[dim+1:]; embedding is dim 0")
        .out("out").in("x").in("index").gives(OutDtype::kInput0).shape(infer_index_select, check_by_infer),
    index_row(0x501, "gather", "out[i][j] = x[index[i][j]][j] for dim 0").out("out").in("x").in("index")
        .gives(OutDtype::kInput0).shape(infer_gather, check_by_infer),
    index_row(0x502, "scatter", "out[index[i][j]][j] = src[i][j] for dim 0").inout("out").in("index").in("src")
        .gives(OutDtype::kCaller).shape(infer_caller, check_scatter),
    index_row(0x503, "scatter_add", "out[index[i][j]][j] += src[i][j] for dim 0").inout("out").in("index").in("src")
        .gives(OutDtype::kCaller).within(Tolerance::kAccumulated).shape(infer_caller, check_scatter),
    index_row(0x504, "index_add", "out[index[i]][j] += src[i][j] for dim 0; index has rank 1").inout("out").in("index")
        .in("src").gives(OutDtype::kCaller).within(Tolerance::kAccumulated).shape(infer_caller, check_index_add),
};

}  // namespace

Rows index_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
