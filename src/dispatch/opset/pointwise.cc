// src/dispatch/opset/pointwise.cc: rows of the pointwise family: one result element from one element of each input.
//
// Inputs broadcast against the output inside the call; each operand may have its own dtype and converts on load and
// store; f16 and bf16 are computed in f32 and rounded once. Numbers 0x001 to 0x0ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef base(uint32_t number, const char* name, const char* formula) {
  OpDef d = row(Family::kPointwise, number, name, formula).out("out").shape(infer_broadcast, check_broadcast);
  d.alias = Alias::kAnyInput;
  d.pointwise = true;
  return d;
}
constexpr OpDef unary(uint32_t number, const char* name, const char* formula) {
  OpDef d = base(number, name, formula).in("x");
  d.fast_counts = 1 | 1ull << 32;
  return d;
}
// A unary function of real or complex numbers that is not exact.
constexpr OpDef curve(uint32_t number, const char* name, const char* formula) {
  return unary(number, name, formula).of(Dtypes::kFloat).within(Tolerance::kTranscendental);
}
constexpr OpDef test(uint32_t number, const char* name, const char* formula) {
  return unary(number, name, formula).of(Dtypes::kAny).gives(OutDtype::kBool).within(Tolerance::kExact);
}
constexpr OpDef binary(uint32_t number, const char* name, const char* formula) {
  OpDef d = base(number, name, formula).in("a").in("b");
  d.fast_counts = 1 | 2ull << 32;
  return d;
}
constexpr OpDef compare(uint32_t number, const char* name, const char* formula) {
  return binary(number, name, formula).of(Dtypes::kAny).gives(OutDtype::kBool).within(Tolerance::kExact);
}
constexpr OpDef bits(uint32_t number, const char* name, const char* formula) {
  return binary(number, name, formula).of(Dtypes::kIntegral).within(Tolerance::kExact);
}
constexpr OpDef backward(uint32_t number, const char* name, const char* saved, const char* formula) {
  OpDef d = base(number, name, formula).in("grad").in(saved).of(Dtypes::kFloat);
  d.fast_counts = 1 | 2ull << 32;
  return d;
}

constexpr OpDef kRows[] = {
    unary(0x001, "neg", "-x").within(Tolerance::kExact),
    unary(0x002, "abs", "|x|; the real modulus of a complex x"),
    unary(0x003, "sign", "-1, 0 or 1; NaN gives 0").within(Tolerance::kExact),
    curve(0x004, "exp", "e^x"),
    curve(0x005, "exp2", "2^x"),
    curve(0x006, "expm1", "e^x - 1"),
    curve(0x007, "log", "ln x"),
    curve(0x008, "log2", "log2 x"),
    curve(0x009, "log10", "log10 x"),
    curve(0x00a, "log1p", "ln(1 + x)"),
    curve(0x00b, "sqrt", "square root").within(Tolerance::kRounded),
    curve(0x00c, "rsqrt", "1 / sqrt(x)"),
    curve(0x00d, "reciprocal", "1 / x").within(Tolerance::kRounded),
    unary(0x00e, "square", "x * x"),
    curve(0x00f, "sin", "sin x"),
    curve(0x010, "cos", "cos x"),
    curve(0x011, "tan", "tan x"),
    curve(0x012, "asin", "arcsin x"),
    curve(0x013, "acos", "arccos x"),
    curve(0x014, "atan", "arctan x"),
    curve(0x015, "sinh", "sinh x"),
    curve(0x016, "cosh", "cosh x"),
    curve(0x017, "tanh", "tanh x"),
    curve(0x018, "sigmoid", "1 / (1 + e^-x)"),
    unary(0x019, "relu", "x > 0 or NaN ? x : 0").of(Dtypes::kReal).within(Tolerance::kExact),
    curve(0x01a, "silu", "x * sigmoid(x)"),
    curve(0x01b, "erf", "error function"),
    curve(0x01c, "erfc", "1 - erf(x)"),
    unary(0x01d, "floor", "largest integer <= x").of(Dtypes::kReal).within(Tolerance::kExact),
    unary(0x01e, "ceil", "smallest integer >= x").of(Dtypes::kReal).within(Tolerance::kExact),
    unary(0x01f, "round", "nearest integer, halves to even").of(Dtypes::kReal).within(Tolerance::kExact),
    unary(0x020, "trunc", "towards zero").of(Dtypes::kReal).within(Tolerance::kExact),
    unary(0x021, "frac", "x - trunc(x)").of(Dtypes::kReal),
    test(0x022, "isnan", "x is NaN"),
    test(0x023, "isinf", "x is an infinity"),
    test(0x024, "isfinite", "x is neither"),
    test(0x025, "logical_not", "x == 0"),
    unary(0x026, "bitwise_not", "~x; not x for bool").of(Dtypes::kIntegral).within(Tolerance::kExact),
    curve(0x027, "gelu", "x * Phi(x)").integer("approximate", 0, "0 none, 1 tanh"),
    curve(0x028, "softplus", "beta * x > threshold ? x : log1p(e^(beta x)) / beta")
        .number_attr("beta", 1.0).number_attr("threshold", 20.0),
    unary(0x029, "leaky_relu", "x > 0 ? x : slope * x").of(Dtypes::kFloat).number_attr("slope", 0.01),
    unary(0x02a, "hardtanh", "min(max(x, min), max)").of(Dtypes::kReal).within(Tolerance::kExact)
        .number_attr("min", -1.0).number_attr("max", 1.0),
    curve(0x02b, "elu", "x > 0 ? scale * x : scale * alpha * expm1(input_scale * x)")
        .number_attr("alpha", 1.0).number_attr("scale", 1.0).number_attr("input_scale", 1.0),

    binary(0x040, "add", "a + alpha * b").number_attr("alpha", 1.0, true).of(Dtypes::kAny),
    binary(0x041, "sub", "a - alpha * b").number_attr("alpha", 1.0, true),
    binary(0x042, "mul", "a * b").of(Dtypes::kAny),
    binary(0x043, "div", "a / b").of(Dtypes::kFloat),
    binary(0x044, "div_floor", "floor(a / b)"),
    binary(0x045, "div_trunc", "trunc(a / b)"),
    binary(0x046, "remainder", "a - b * floor(a / b): the sign of b"),
    binary(0x047, "fmod", "a - b * trunc(a / b): the sign of a"),
    binary(0x048, "pow", "a ^ b").within(Tolerance::kTranscendental),
    binary(0x049, "maximum", "larger one; NaN wins").of(Dtypes::kAny).within(Tolerance::kExact),
    binary(0x04a, "minimum", "smaller one; NaN wins").of(Dtypes::kAny).within(Tolerance::kExact),
    binary(0x04b, "atan2", "angle of (b, a)").of(Dtypes::kFloat).within(Tolerance::kTranscendental),
    compare(0x04c, "eq", "a == b"),
    compare(0x04d, "ne", "a != b"),
    compare(0x04e, "lt", "a < b"),
    compare(0x04f, "le", "a <= b"),
    compare(0x050, "gt", "a > b"),
    compare(0x051, "ge", "a >= b"),
    compare(0x052, "logical_and", "a != 0 and b != 0"),
    compare(0x053, "logical_or", "a != 0 or b != 0"),
    compare(0x054, "logical_xor", "(a != 0) != (b != 0)"),
    bits(0x055, "bitwise_and", "a & b"),
    bits(0x056, "bitwise_or", "a | b"),
    bits(0x057, "bitwise_xor", "a ^ b"),
    bits(0x058, "shift_left", "a << b"),
    bits(0x059, "shift_right", "a >> b, arithmetic for signed types"),

    backward(0x070, "relu_backward", "x", "x <= threshold ? 0 : grad").within(Tolerance::kExact)
        .number_attr("threshold", 0.0),
    backward(0x071, "tanh_backward", "y", "grad * (1 - y * y)"),
    backward(0x072, "sigmoid_backward", "y", "grad * (1 - y) * y"),
    backward(0x073, "gelu_backward", "x", "grad * gelu'(x)").within(Tolerance::kTranscendental)
        .integer("approximate", 0, "0 none, 1 tanh"),
    backward(0x074, "silu_backward", "x", "grad * silu'(x)").within(Tolerance::kTranscendental),

    base(0x080, "where", "cond ? a : b").in("cond").in("a").in("b").of(Dtypes::kAny).within(Tolerance::kExact),
    base(0x081, "clamp", "min(max(x, min), max); NaN stays").in("x").maybe("min").maybe("max")
        .of(Dtypes::kReal).within(Tolerance::kExact),
    base(0x082, "lerp", "a + w * (b - a); from b when |w| >= 0.5").in("a").in("b").in("w").of(Dtypes::kFloat),
    base(0x083, "addcmul", "x + value * a * b").in("x").in("a").in("b").number_attr("value", 1.0, true),
    base(0x084, "addcdiv", "x + value * a / b").in("x").in("a").in("b").number_attr("value", 1.0, true)
        .of(Dtypes::kFloat),
    base(0x085, "masked_fill", "mask ? value : x").in("x").in("mask").in("value")
        .of(Dtypes::kAny).within(Tolerance::kExact),
};

}  // namespace

Rows pointwise_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
