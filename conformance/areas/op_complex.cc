// conformance/areas/op_complex.cc: complex numbers: pointwise operations with a complex meaning, sums, products of matrices.
#include <flhal/ops.h>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

constexpr flhal_dtype kComplex[] = {FLHAL_C64, FLHAL_C128};

// Numbers that both types hold exactly, none of them 0: they are divisors as well.
Tensor filled_complex(Context& ctx, flhal_dtype dtype, const Sizes& sizes, Layout layout = Layout::kDense) {
  Tensor t(dtype, sizes, layout);
  for (int64_t i = 0; i < t.count(); ++i) {
    t.set(i, static_cast<double>(ctx.random()() % 32) / 8 - 2.0625);
    t.set_imaginary(i, static_cast<double>(ctx.random()() % 32) / 8 - 2.0625);
  }
  return t;
}

void pointwise_case(Context& ctx, OpCall& call, Layout layout, bool broadcast) {
  const Sizes sizes = {3, 5, 7};
  std::vector<Values> values;
  for (size_t i = 0; i < input_names(*call.row).size(); ++i) {
    call.inputs.push_back(filled_complex(ctx, call.compute, broadcast && i > 0 ? Sizes{5, 1} : sizes, layout));
    values.push_back(call.inputs.back().values());
  }
  call.expected.push_back(complex_pointwise(call.row->name, values, sizes));
  call.outputs.emplace_back(call.compute, sizes, layout == Layout::kTransposed ? Layout::kDense : layout);
}

void sum_case(Context& ctx, OpCall& call, bool mean) {
  const Sizes out = {3, 5, 1};
  call.inputs.push_back(filled_complex(ctx, call.compute, {3, 5, 7}));
  call.expected.push_back(complex_sum(call.inputs[0].values(), out, mean));
  call.outputs.emplace_back(call.compute, out);
}

void matmul_case(Context& ctx, OpCall& call, Layout layout) {
  call.inputs.push_back(filled_complex(ctx, call.compute, {5, 9}, layout));
  call.inputs.push_back(filled_complex(ctx, call.compute, {9, 4}));
  call.inputs.emplace_back();
  call.expected.push_back(complex_matmul(call.inputs[0].values(), call.inputs[1].values()));
  call.outputs.emplace_back(call.compute, Sizes{5, 4});
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    const std::string op = row.name;
    for (flhal_dtype dtype : kComplex) {
      auto add = [&](const char* name, const std::string& duties, std::function<void(Context&, OpCall&)> make) {
        add_op_case(row, dtype, name, duties, std::move(make));
      };
      if (has_complex_reference(op)) {
        for (Layout layout : {Layout::kDense, Layout::kTransposed, Layout::kUnaligned})
          add(layout_name(layout), duties_of_layout(layout), [layout](Context& c, OpCall& call) { pointwise_case(c, call, layout, false); });
        if (input_names(row).size() > 1)
          add("broadcast", "FLP-079 FLP-081", [](Context& c, OpCall& call) { pointwise_case(c, call, Layout::kDense, true); });
      }
      if (op == "sum" || op == "mean") add("last", kValueDuties, [mean = op == "mean"](Context& c, OpCall& call) { sum_case(c, call, mean); });
      if (op == "matmul")
        for (Layout layout : {Layout::kDense, Layout::kTransposed})
          add(layout == Layout::kDense ? "plain" : "a_transposed", duties_of_layout(layout), [layout](Context& c, OpCall& call) { matmul_case(c, call, layout); });
    }
  }
  return true;
}

}  // namespace flhal::conformance
