// src/dispatch/opset/random.cc: rows of random numbers: Philox 4x32-10, element i uses counter offset + i/4, word i%4
// (element i in the output's logical order), so that a seed gives the same numbers on every chip. Numbers 0x600 to 0x6ff.
#include "dispatch/opset/opset.h"
#include "dispatch/opset/shape_rules.h"

namespace flhal::opset {
namespace {

constexpr OpDef draw(uint32_t number, const char* name, const char* formula) {
  OpDef d = row(Family::kRandom, number, name, formula).out("out").philox().shape(infer_free, check_free)
      .gives(OutDtype::kCaller);
  d.random = true;
  return d;
}

constexpr OpDef kRows[] = {
    draw(0x600, "uniform", "from + (to - from) * u, u = the upper 24 bits of w * 2^-24; 32 bits for f64, 11 for f16, 8 for bf16").of(Dtypes::kFloat)
        .number_attr("from", 0.0, true).number_attr("to", 1.0, true),
    draw(0x601, "normal", "mean + std * z, z by Box-Muller from words (0,1) and (2,3), in f32 for every dtype").of(Dtypes::kFloat)
        .within(Tolerance::kTranscendental).number_attr("mean", 0.0, true).number_attr("std", 1.0, true),
    draw(0x602, "bernoulli", "u < p, u of 24 bits").of(Dtypes::kAny).within(Tolerance::kExact).number_attr("p", 0.5, true),
    draw(0x603, "randint", "from + w mod (to - from); above a width of 2^32 w is followed by the next word of its block").of(Dtypes::kAny).within(Tolerance::kExact)
        .number_attr("from", 0.0, true, "an INT value is exact up to 2^63")
        .number_attr("to", 1.0, true, "an INT value is exact up to 2^63"),
};

}  // namespace

Rows random_rows() { return {kRows, sizeof kRows / sizeof kRows[0]}; }

}  // namespace flhal::opset
