// src/dispatch/opset/norm.cc: rows of softmax and the normalisations. Numbers 0x400 to 0x4ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef norm(uint32_t number, const char* name, const char* formula) {
  return row(Family::kNorm, number, name, formula).of(Dtypes::kFloat).within(Tolerance::kAccumulated)
      .shape(infer_along, check_by_infer);
}

constexpr OpDef kRows[] = {
    norm(0x400, "softmax", "e^(x - max) / sum(e^(x - max)) along dim").out("out").in("x").integer("dim", -1),
    norm(0x401, "log_softmax", "x - max - ln(sum(e^(x - max))) along dim").out("out").in("x").integer("dim", -1),
    norm(0x402, "softmax_backward", "y * (grad - sum(grad * y)) along dim").out("gx").in("grad").in("y")
        .integer("dim", -1),
    norm(0x403, "log_softmax_backward", "grad - e^y * sum(grad) along dim").out("gx").in("grad").in("y")
        .integer("dim", -1),
    norm(0x410, "layer_norm",
         "(x - mean) * rstd * weight + bias over the last n_dims; mean and rstd have x's rank with 1 there")
        .out("out").out("mean", true).out("rstd", true).in("x").maybe("weight").maybe("bias")
        .integer("n_dims", 1).number_attr("eps", 1e-5).shape(infer_layer_norm, check_by_infer),
    norm(0x411, "layer_norm_backward", "gradients of layer_norm")
        .out("gx", true).out("gw", true).out("gb", true)
        .in("grad").in("x").in("mean").in("rstd").maybe("weight")
        .integer("n_dims", 1).shape(infer_layer_norm_backward, check_by_infer),
    norm(0x420, "batch_norm",
         "(x - mean) * rstd * weight + bias per channel (dimension 1); training computes the statistics and moves the "
         "running ones by momentum")
        .out("out").out("save_mean", true).out("save_rstd", true)
        .in("x").maybe("weight").maybe("bias").maybe_written("running_mean").maybe_written("running_var")
        .integer("training", 0).number_attr("momentum", 0.1).number_attr("eps", 1e-5)
        .shape(infer_batch_norm, check_by_infer),
    norm(0x421, "batch_norm_backward", "gradients of batch_norm")
        .out("gx", true).out("gw", true).out("gb", true)
        .in("grad").in("x").maybe("weight").maybe("running_mean").maybe("running_var").maybe("save_mean")
        .maybe("save_rstd")
        .integer("training", 0).number_attr("eps", 1e-5).shape(infer_batch_norm_backward, check_by_infer),
};

}  // namespace

Rows norm_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
