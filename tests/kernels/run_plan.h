// tests/kernels/run_plan.h: makes a plan for a call on host arrays and runs its groups, in pieces and out of order.
#pragma once

#include <catch2/catch.hpp>
#include <flhal/ops.h>

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "array.h"
#include "kernels/kernel_plan.h"

namespace flhal::test {

struct Attr {
  uint32_t key;
  uint16_t kind;
  double f = 0;
  int64_t i = 0;
  std::vector<int64_t> list;
  std::vector<uint64_t> philox;
  static Attr integer(uint32_t key, int64_t v) { return {key, FLHAL_ATTR_INT, 0, v, {}, {}}; }
  static Attr number(uint32_t key, double v) { return {key, FLHAL_ATTR_FLOAT, v, 0, {}, {}}; }
  static Attr ints(uint32_t key, std::vector<int64_t> v) { return {key, FLHAL_ATTR_INTS, 0, 0, std::move(v), {}}; }
  static Attr seed(uint32_t key, uint64_t seed, uint64_t offset) { return {key, FLHAL_ATTR_PHILOX, 0, 0, {}, {seed, offset}}; }
};

struct Outcome {
  bool planned = false;
  std::string reason, function;
  kernels::KernelError error;
  uint64_t groups = 0;
};

// True when a loop over dtypes, layouts and shapes shall go on to its next case: never, but under an interpreter, which has time
// for one of `n` (FLHAL_TEST_KERNEL_FEW, oclgrind.sh).
bool left_out(uint32_t n);

// outputs first, then inputs.
Outcome try_op(uint32_t op, const std::vector<Array*>& outputs, const std::vector<const Array*>& inputs,
               flhal_dtype compute = 0, const std::vector<Attr>& attrs = {});
// The same, and it must have been planned without a fault, with every canary intact.
Outcome run_op(uint32_t op, const std::vector<Array*>& outputs, const std::vector<const Array*>& inputs,
               flhal_dtype compute = 0, const std::vector<Attr>& attrs = {});

// |got - want| <= absolute + relative * |want|, or both NaN, or equal infinities. Says where it fails.
void check_close(const std::vector<double>& got, const std::vector<double>& want, double relative, double absolute,
                 const std::string& what);
// The relative error one rounding to dtype makes.
double epsilon_of(flhal_dtype dtype);

}  // namespace flhal::test
