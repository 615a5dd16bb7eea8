// conformance/areas/op_along.cc: reductions, running sums, products of matrices, softmax and norms.
#include <flhal/ops.h>

#include <cmath>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

constexpr Layout kStrided[] = {Layout::kTransposed, Layout::kGaps, Layout::kSteps, Layout::kUnaligned};
bool first_dtype(const OpRow& row, flhal_dtype d) { return d == dtypes_of_row(row)[0]; }

void add_reduction(const OpRow& row, flhal_dtype dtype, const char* name, const Sizes& in, const Sizes& out, Layout layout, const std::string& duties,
                   double correction = 1) {
  add_op_case(row, dtype, name, duties, [=](Context& ctx, OpCall& call) {
    if (correction != 1) call.attributes.number(FLHAL_ATTR_VAR_CORRECTION, correction);
    call.inputs.push_back(filled(ctx, call.row->name, 0, call.compute, in, layout));
    call.outputs.emplace_back(output_dtype(*call.row, call.compute), out, layout == Layout::kTransposed ? Layout::kDense : layout);
    call.expected.push_back(reduction(call.row->name, call.inputs[0].values(), out, call.attributes));
  });
}

void add_reductions(const OpRow& row) {
  std::string op = row.name;
  bool position = op == "argmax" || op == "argmin", extreme = position || op == "amax" || op == "amin";
  for (flhal_dtype dtype : dtypes_of_row(row)) {
    add_reduction(row, dtype, "last", {3, 5, 7}, {3, 5, 1}, Layout::kDense, kValueDuties);
    add_reduction(row, dtype, "all", {3, 5, 7}, {1, 1, 1}, Layout::kDense, kValueDuties);
    if (!first_dtype(row, dtype)) continue;
    add_reduction(row, dtype, "first", {3, 5, 7}, {1, 5, 7}, Layout::kDense, kValueDuties);
    add_reduction(row, dtype, "middle", {3, 5, 7}, {3, 1, 7}, Layout::kDense, kValueDuties);
    add_reduction(row, dtype, "nothing", {3, 5}, {3, 5}, Layout::kDense, kValueDuties);
    add_reduction(row, dtype, "large", {4, 1000}, {4, 1}, Layout::kDense, kValueDuties);
    if (!position) add_reduction(row, dtype, "two", {3, 5, 7}, {1, 5, 1}, Layout::kDense, kValueDuties);
    for (Layout layout : kStrided) add_reduction(row, dtype, layout_name(layout), {3, 5, 7}, {3, 5, 1}, layout, duties_of_layout(layout));
    add_reduction(row, dtype, "empty_rows", {0, 5, 7}, {0, 5, 1}, Layout::kDense, "FLP-088");
    if (!extreme) add_reduction(row, dtype, "empty", {3, 0, 7}, {3, 1, 7}, Layout::kDense, "FLP-088");
    if (op == "var") add_reduction(row, dtype, "correction", {3, 5, 7}, {3, 5, 1}, Layout::kDense, kValueDuties, 0);
  }
}

void add_cumsum(const OpRow& row, flhal_dtype dtype, const std::string& name, int64_t dim, Layout layout, const Sizes& sizes, const std::string& duties) {
  add_op_case(row, dtype, name, duties, [=](Context& ctx, OpCall& call) {
    if (dim != 0) call.attributes.integer(FLHAL_ATTR_CUMSUM_DIM, dim);
    call.inputs.push_back(filled(ctx, "cumsum", 0, call.compute, sizes, layout));
    call.outputs.emplace_back(output_dtype(*call.row, call.compute), sizes, layout);
    call.expected.push_back(cumsum(call.inputs[0].values(), dim));
  });
}

struct Product { const char* name; Sizes a, b, c, out; double alpha, beta; Layout layout_a, layout_b, layout_out; const char* duties; };
void add_product(const OpRow& row, flhal_dtype dtype, const Product& p) {
  add_op_case(row, dtype, p.name, p.duties, [p](Context& ctx, OpCall& call) {
    if (p.alpha != 1) call.attributes.number(FLHAL_ATTR_MATMUL_ALPHA, p.alpha, true);
    if (p.beta != 1) call.attributes.number(FLHAL_ATTR_MATMUL_BETA, p.beta, true);
    call.inputs.push_back(filled(ctx, "matmul", 0, call.compute, p.a, p.layout_a));
    call.inputs.push_back(filled(ctx, "matmul", 1, call.compute, p.b, p.layout_b));
    if (p.c.empty()) call.inputs.emplace_back();
    else call.inputs.push_back(filled(ctx, "matmul", 2, call.compute, p.c));
    call.outputs.emplace_back(call.compute, p.out, p.layout_out);
    call.expected.push_back(matmul(call.inputs[0].values(), call.inputs[1].values(), call.inputs[2].values(), p.out, p.alpha, p.beta));
  });
}

const std::vector<Product>& products() {
  constexpr Layout D = Layout::kDense, T = Layout::kTransposed, G = Layout::kGaps, S = Layout::kSteps, U = Layout::kUnaligned;
  static const char *kStrides = "FLP-079 FLP-081 FLP-083", *kOffset = "FLP-079 FLP-082 FLP-083";
  static const std::vector<Product> all = {
      {"small", {4, 6}, {6, 5}, {}, {4, 5}, 1, 1, D, D, D, kValueDuties},
      // Above 4096 multiplications, since makers leave smaller ones to others.
      {"matrices", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, D, D, D, kValueDuties},
      {"batches", {3, 14, 24}, {3, 24, 20}, {}, {3, 14, 20}, 1, 1, D, D, D, kValueDuties},
      {"broadcast_batches", {2, 1, 6, 24}, {3, 24, 20}, {}, {2, 3, 6, 20}, 1, 1, D, D, D, kStrides},
      {"one_row", {1, 100}, {100, 70}, {}, {1, 70}, 1, 1, D, D, D, kValueDuties},
      {"one_column", {70, 100}, {100, 1}, {}, {70, 1}, 1, 1, D, D, D, kValueDuties},
      {"large", {67, 80}, {80, 45}, {}, {67, 45}, 1, 1, D, D, D, kValueDuties},
      {"bias", {14, 24}, {24, 20}, {20}, {14, 20}, 1, 1, D, D, D, kValueDuties},
      {"matrix_added", {14, 24}, {24, 20}, {14, 20}, {14, 20}, 1, 1, D, D, D, kValueDuties},
      {"alpha_beta", {14, 24}, {24, 20}, {14, 20}, {14, 20}, 0.5, 2, D, D, D, kValueDuties},
      {"beta_0", {14, 24}, {24, 20}, {14, 20}, {14, 20}, 1, 0, D, D, D, kValueDuties},
      {"transposed_a", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, T, D, D, kStrides},
      {"transposed_b", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, D, T, D, kStrides},
      {"transposed_out", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, D, D, T, kStrides},
      {"gaps", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, G, G, G, kStrides},
      {"steps", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, S, S, S, kStrides},
      {"unaligned", {14, 24}, {24, 20}, {}, {14, 20}, 1, 1, U, U, U, kOffset},
      {"empty", {0, 6}, {6, 5}, {}, {0, 5}, 1, 1, D, D, D, "FLP-088"},
      {"empty_sum", {4, 0}, {0, 5}, {}, {4, 5}, 1, 1, D, D, D, "FLP-088"},
  };
  return all;
}

// softmax and its relatives: one or two inputs of one shape, one dimension.
void add_along(const OpRow& row, flhal_dtype dtype, const std::string& name, const Sizes& sizes, int64_t dim, Layout layout, const std::string& duties) {
  add_op_case(row, dtype, name, duties, [=](Context& ctx, OpCall& call) {
    std::string op = call.row->name;
    bool logarithm = op.find("log_") == 0, backward = op.find("backward") != std::string::npos;
    if (dim != -1) call.attributes.integer(call.row->number << 8 | 1, dim);
    for (size_t i = 0; i < (backward ? 2 : 1); ++i) call.inputs.push_back(filled(ctx, op, i, call.compute, sizes, layout));
    if (backward) {                          // y as the forward op leaves it
      Expected y = softmax(call.inputs[1].values(), dim, logarithm);
      call.inputs[1].fill_with([&](int64_t i) { return y.value[static_cast<size_t>(i)]; });
    }
    call.outputs.emplace_back(call.compute, sizes, layout);
    call.expected.push_back(backward ? softmax_backward(call.inputs[0].values(), call.inputs[1].values(), dim, logarithm)
                                     : softmax(call.inputs[0].values(), dim, logarithm));
  });
}

void add_layer_norm(const OpRow& row, flhal_dtype dtype, const std::string& name, const Sizes& sizes, int64_t n_dims, bool affine, double eps, Layout layout,
                    const std::string& duties) {
  add_op_case(row, dtype, name, duties, [=](Context& ctx, OpCall& call) {
    if (n_dims != 1) call.attributes.integer(FLHAL_ATTR_LAYER_NORM_N_DIMS, n_dims);
    if (eps != 1e-5) call.attributes.number(FLHAL_ATTR_LAYER_NORM_EPS, eps);
    call.inputs.push_back(filled(ctx, "layer_norm", 0, call.compute, sizes, layout));
    Sizes tail(sizes.end() - n_dims, sizes.end());
    for (size_t i = 1; i < 3; ++i)
      if (affine) call.inputs.push_back(filled(ctx, "layer_norm", i, call.compute, tail));
      else call.inputs.emplace_back();
    call.outputs.emplace_back(call.compute, sizes, layout);
    call.outputs.emplace_back();
    call.outputs.emplace_back();
    call.expected.push_back(layer_norm(call.inputs[0].values(), call.inputs[1].values(), call.inputs[2].values(), n_dims, eps));
  });
}

void add_batch_norm(const OpRow& row, flhal_dtype dtype, const std::string& name, const Sizes& sizes, bool affine, Layout layout, const std::string& duties) {
  add_op_case(row, dtype, name, duties, [=](Context& ctx, OpCall& call) {
    call.inputs.push_back(filled(ctx, "batch_norm", 0, call.compute, sizes, layout));
    Sizes channels = {sizes[1]};
    for (size_t i = 1; i < 3; ++i)
      if (affine) call.inputs.push_back(filled(ctx, "batch_norm", i, call.compute, channels));
      else call.inputs.emplace_back();
    call.inputs.push_back(filled(ctx, "batch_norm", 3, call.compute, channels));
    call.inputs.push_back(filled(ctx, "sqrt", 0, call.compute, channels));       // a variance is positive
    call.outputs.emplace_back(call.compute, sizes, layout);
    call.outputs.emplace_back();
    call.outputs.emplace_back();
    call.expected.push_back(batch_norm(call.inputs[0].values(), call.inputs[1].values(), call.inputs[2].values(), call.inputs[3].values(),
                                       call.inputs[4].values(), 1e-5));
  });
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    std::string op = row.name, family = row.family;
    if (family == "reduce" && op != "cumsum") add_reductions(row);
    for (flhal_dtype dtype : dtypes_of_row(row)) {
      bool first = first_dtype(row, dtype);
      if (op == "cumsum") {
        add_cumsum(row, dtype, "first", 0, Layout::kDense, {3, 5, 7}, kValueDuties);
        add_cumsum(row, dtype, "last", 2, Layout::kDense, {3, 5, 7}, kValueDuties);
        if (!first) continue;
        for (Layout layout : kStrided) add_cumsum(row, dtype, layout_name(layout), 1, layout, {3, 5, 7}, duties_of_layout(layout));
        add_cumsum(row, dtype, "empty", 0, Layout::kDense, {0, 5}, "FLP-088");
      } else if (op == "matmul") {
        for (const Product& p : products()) {
          bool fraction = p.alpha != 1 || p.beta != 1;
          if (first || ((p.layout_a == Layout::kDense && p.layout_b == Layout::kDense && !fraction) || is_float(dtype))) add_product(row, dtype, p);
        }
      } else if (op.find("softmax") != std::string::npos) {
        add_along(row, dtype, "last", {4, 9}, -1, Layout::kDense, kValueDuties);
        add_along(row, dtype, "first", {4, 9}, 0, Layout::kDense, kValueDuties);
        if (!first) continue;
        add_along(row, dtype, "middle", {2, 6, 5}, 1, Layout::kDense, kValueDuties);
        add_along(row, dtype, "large", {3, 1000}, -1, Layout::kDense, kValueDuties);
        add_along(row, dtype, "one", {5, 1}, -1, Layout::kDense, kValueDuties);
        for (Layout layout : kStrided) add_along(row, dtype, layout_name(layout), {3, 4, 9}, -1, layout, duties_of_layout(layout));
        add_along(row, dtype, "empty", {0, 9}, -1, Layout::kDense, "FLP-088");
      } else if (op == "layer_norm") {
        add_layer_norm(row, dtype, "affine", {4, 24}, 1, true, 1e-5, Layout::kDense, kValueDuties);
        add_layer_norm(row, dtype, "plain", {4, 24}, 1, false, 1e-5, Layout::kDense, kValueDuties);
        if (!first) continue;
        add_layer_norm(row, dtype, "two_dims", {3, 4, 8}, 2, true, 1e-5, Layout::kDense, kValueDuties);
        add_layer_norm(row, dtype, "eps", {4, 24}, 1, true, 0.5, Layout::kDense, kValueDuties);
        add_layer_norm(row, dtype, "large", {2, 1000}, 1, true, 1e-5, Layout::kDense, kValueDuties);
        for (Layout layout : kStrided) add_layer_norm(row, dtype, layout_name(layout), {2, 3, 24}, 1, true, 1e-5, layout, duties_of_layout(layout));
        add_layer_norm(row, dtype, "empty", {0, 24}, 1, true, 1e-5, Layout::kDense, "FLP-088");
      } else if (op == "batch_norm") {
        add_batch_norm(row, dtype, "images", {2, 3, 4, 5}, true, Layout::kDense, kValueDuties);
        add_batch_norm(row, dtype, "plain", {2, 3, 4, 5}, false, Layout::kDense, kValueDuties);
        if (!first) continue;
        add_batch_norm(row, dtype, "rows", {6, 3}, true, Layout::kDense, kValueDuties);
        for (Layout layout : kStrided) add_batch_norm(row, dtype, layout_name(layout), {2, 3, 4, 5}, true, layout, duties_of_layout(layout));
        add_batch_norm(row, dtype, "empty", {0, 3, 4, 5}, true, Layout::kDense, "FLP-088");
      }
    }
  }
  return true;
}

}  // namespace flhal::conformance
