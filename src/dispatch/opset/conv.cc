// src/dispatch/opset/conv.cc: rows of convolution and pooling. Dimensions are N, C, H, W in this order; channels_last
// shows in the strides. Numbers 0x300 to 0x3ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef conv(uint32_t number, const char* name, const char* formula) {
  return row(Family::kConv, number, name, formula)
      .ints2("stride", 1).ints2("padding", 0).ints2("dilation", 1).integer("groups", 1)
      .of(Dtypes::kFloat).within(Tolerance::kAccumulated);
}

constexpr OpDef kRows[] = {
    conv(0x300, "conv2d", "cross-correlation of x with w, plus bias").out("out").in("x").in("w").maybe("bias")
        .shape(infer_conv2d, check_by_infer),
    conv(0x301, "conv2d_backward_input", "gradient of conv2d for x; the sizes of gx choose among the fitting ones")
        .out("gx").in("grad").in("w").shape(infer_conv2d_backward, check_conv2d_backward_input),
    conv(0x302, "conv2d_backward_weight", "gradient of conv2d for w; the sizes of gw choose among the fitting ones")
        .out("gw").in("grad").in("x").shape(infer_conv2d_backward, check_conv2d_backward_weight),
    row(Family::kConv, 0x310, "max_pool2d", "largest in each window; index is y * W + x in the input's plane")
        .out("out").out("index", true).in("x")
        .ints2("kernel", 1, true).ints2("stride", 1, true).ints2("padding", 0).ints2("dilation", 1).integer("ceil", 0)
        .of(Dtypes::kReal).within(Tolerance::kExact).shape(infer_max_pool2d, check_by_infer),
    row(Family::kConv, 0x311, "max_pool2d_backward", "gx[index] += grad").out("gx").in("grad").in("index")
        .of(Dtypes::kFloat).within(Tolerance::kAccumulated).shape(infer_caller, check_max_pool2d_backward),
    row(Family::kConv, 0x312, "avg_pool2d", "mean of each window").out("out").in("x")
        .ints2("kernel", 1, true).ints2("stride", 1, true).ints2("padding", 0).integer("count_include_pad", 1)
        .integer("divisor", 0, "0: the number of elements").integer("ceil", 0)
        .of(Dtypes::kFloat).within(Tolerance::kAccumulated).shape(infer_avg_pool2d, check_by_infer),
};

}  // namespace

Rows conv_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
