// conformance/areas/op_moves.cc: indexing, copies, conversions, fills and series.
#include <flhal/ops.h>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

constexpr Layout kAll[] = {Layout::kDense, Layout::kTransposed, Layout::kGaps, Layout::kSteps, Layout::kUnaligned};

// Indices below `limit`; with `distinct` no two along `dim` are the same.
Tensor indices(Context& ctx, const Sizes& sizes, int64_t limit, bool distinct = false, int64_t dim = 0) {
  Tensor t(FLHAL_I64, sizes);
  t.fill_with([&](int64_t i) {
    return static_cast<double>(distinct ? (index_of(i, sizes)[static_cast<size_t>(dim)] * 3 + 1) % limit : static_cast<int64_t>(ctx.random()() % static_cast<uint64_t>(limit)));
  });
  return t;
}
void set_dim(OpCall& call, int64_t dim) {
  if (dim != 0) call.attributes.integer(call.row->number << 8 | 1, dim);
}

void select(Context& ctx, OpCall& call, int64_t dim, Layout layout, const Sizes& chosen) {
  set_dim(call, dim);
  Sizes x = {5, 6, 7}, out(x.begin(), x.begin() + dim);
  out.insert(out.end(), chosen.begin(), chosen.end());
  out.insert(out.end(), x.begin() + dim + 1, x.end());
  call.inputs.push_back(filled(ctx, "index_select", 0, call.compute, x, layout));
  call.inputs.push_back(indices(ctx, chosen, x[static_cast<size_t>(dim)]));
  call.outputs.emplace_back(call.compute, out, layout);
  call.expected.push_back(index_select(call.inputs[0].values(), call.inputs[1].values(), out, dim));
}
void gather_case(Context& ctx, OpCall& call, int64_t dim, Layout layout, const Sizes& sizes) {
  set_dim(call, dim);
  Sizes x = {5, 6, 7};
  call.inputs.push_back(filled(ctx, "gather", 0, call.compute, x, layout));
  call.inputs.push_back(indices(ctx, sizes, x[static_cast<size_t>(dim)]));
  call.outputs.emplace_back(call.compute, sizes, layout);
  call.expected.push_back(gather(call.inputs[0].values(), call.inputs[1].values(), dim));
}
void scatter_case(Context& ctx, OpCall& call, int64_t dim, Layout layout, const Sizes& sizes) {
  std::string op = call.row->name;
  set_dim(call, dim);
  Sizes out = {7, 7, 7};
  call.outputs.push_back(filled(ctx, op, 0, call.compute, out, layout));
  call.inputs.push_back(indices(ctx, sizes, 7, op == "scatter", dim));   // without "add" the last one to write is nobody's promise
  call.inputs.push_back(filled(ctx, op, 1, call.compute, sizes, layout));
  call.expected.push_back(scatter(call.outputs[0].values(), call.inputs[0].values(), call.inputs[1].values(), dim, op == "scatter_add"));
}
void index_add_case(Context& ctx, OpCall& call, int64_t dim, Layout layout) {
  set_dim(call, dim);
  Sizes out = {5, 6, 7}, src = out;
  src[static_cast<size_t>(dim)] = 9;
  call.outputs.push_back(filled(ctx, "index_add", 0, call.compute, out, layout));
  call.inputs.push_back(indices(ctx, {9}, out[static_cast<size_t>(dim)]));
  call.inputs.push_back(filled(ctx, "index_add", 1, call.compute, src, layout));
  call.expected.push_back(index_add(call.outputs[0].values(), call.inputs[0].values(), call.inputs[1].values(), dim));
}

void add_index_rows(const OpRow& row, flhal_dtype dtype) {
  std::string op = row.name;
  auto add = [&](const std::string& name, const std::string& duties, std::function<void(Context&, OpCall&)> make) { add_op_case(row, dtype, name, duties, std::move(make)); };
  auto of = [op](int64_t dim, Layout layout, bool empty) {
    return [=](Context& ctx, OpCall& call) {
      if (op == "index_select") return select(ctx, call, dim, layout, empty ? Sizes{0} : Sizes{4});
      if (op == "gather") return gather_case(ctx, call, dim, layout, empty ? Sizes{0, 6, 7} : Sizes{4, 5, 6});
      if (op == "index_add") return index_add_case(ctx, call, dim, layout);
      return scatter_case(ctx, call, dim, layout, empty ? Sizes{0, 5, 6} : Sizes{4, 5, 6});
    };
  };
  add("first", kValueDuties, of(0, Layout::kDense, false));
  add("last", kValueDuties, of(2, Layout::kDense, false));
  if (dtype != FLHAL_F32) return;
  for (Layout layout : kAll)
    if (layout != Layout::kDense) add(layout_name(layout), duties_of_layout(layout), of(1, layout, false));
  if (op != "index_add") add("empty", "FLP-088", of(0, Layout::kDense, true));
  if (op == "index_select") add("table", kValueDuties, [](Context& ctx, OpCall& call) { select(ctx, call, 0, Layout::kDense, {3, 4}); });
}

void add_copy_rows(const OpRow& row, flhal_dtype dtype) {
  std::string op = row.name;
  for (Layout layout : kAll) {
    if (dtype != FLHAL_F32 && layout > Layout::kTransposed) continue;
    add_op_case(row, dtype, layout_name(layout), duties_of_layout(layout), [=](Context& ctx, OpCall& call) {
      Sizes sizes = {4, 5, 7};
      if (op == "fill") {
        call.inputs.push_back(Tensor::host_scalar(call.compute, suitable_value("fill", 0, call.compute, 5)));
        call.expected.emplace_back(count_of(sizes));
        for (double& v : call.expected[0].value) v = call.inputs[0].get(0);
      } else if (op == "cat") {
        sizes = {4, 9, 7};
        call.attributes.integer(FLHAL_ATTR_CAT_DIM, 1);
        std::vector<Values> parts;
        for (int64_t n : {2, 4, 3}) {
          call.inputs.push_back(filled(ctx, op, 0, call.compute, {4, n, 7}, layout));
          parts.push_back(call.inputs.back().values());
        }
        call.groups = {1, 3};
        call.expected.push_back(cat(parts, sizes, 1));
      } else {
        call.inputs.push_back(filled(ctx, op, 0, call.compute, sizes, layout));
        Values x = call.inputs[0].values();
        if (op == "copy") {
          call.expected.emplace_back(count_of(sizes));
          call.expected[0].value = x.v;
        } else {
          call.expected.push_back(triangle(x, 0, op == "tril"));
        }
      }
      call.outputs.emplace_back(call.compute, sizes, layout == Layout::kTransposed && op == "copy" ? Layout::kDense : layout);
    });
  }
  if (dtype != FLHAL_F32) return;
  if (op == "tril" || op == "triu")
    for (int64_t diagonal : {-2, 3})
      add_op_case(row, dtype, diagonal < 0 ? "diagonal_minus_2" : "diagonal_3", kValueDuties, [=](Context& ctx, OpCall& call) {
        call.attributes.integer(call.row->number << 8 | 1, diagonal);
        call.inputs.push_back(filled(ctx, op, 0, call.compute, {2, 6, 5}));
        call.outputs.emplace_back(call.compute, Sizes{2, 6, 5});
        call.expected.push_back(triangle(call.inputs[0].values(), diagonal, op == "tril"));
      });
  if (op != "cat")
    add_op_case(row, dtype, "empty", "FLP-088", [=](Context& ctx, OpCall& call) {
      if (op == "fill") call.inputs.push_back(Tensor::host_scalar(call.compute, 1));
      else call.inputs.push_back(filled(ctx, op, 0, call.compute, {3, 0, 4}));
      call.outputs.emplace_back(call.compute, Sizes{3, 0, 4});
    });
}

// Conversions; the arithmetic type is the target's.
void add_conversions(const OpRow& row, flhal_dtype from) {
  for (flhal_dtype to : dtypes_of_row(row)) {
    if (to == from) continue;
    add_op_case(row, to, "from_" + dtype_name(from), kValueDuties, [from](Context& ctx, OpCall& call) {
      Tensor x(from, {4, 9});
      // What both types hold, so that nothing depends on how an overflow converts.
      x.fill_with([&](int64_t) { return suitable_value("copy", 0, from == FLHAL_BOOL || call.compute == FLHAL_BOOL ? FLHAL_BOOL : FLHAL_U8, ctx.random()()); });
      call.inputs.push_back(std::move(x));
      call.outputs.emplace_back(call.compute, Sizes{4, 9});
      call.expected.emplace_back(36);
      call.expected[0].value = call.inputs[0].values().v;
    });
  }
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    std::string op = row.name, family = row.family;
    for (flhal_dtype dtype : dtypes_of_row(row)) {
      bool adds = op == "scatter_add" || op == "index_add";
      if (family == "index" && !(adds && dtype == FLHAL_BOOL)) add_index_rows(row, dtype);
      if (op == "copy") add_conversions(row, dtype);
      if (op == "copy" || op == "fill" || op == "cat" || op == "tril" || op == "triu") add_copy_rows(row, dtype);
      if (op == "arange" && dtype != FLHAL_BOOL)
        for (Layout layout : {Layout::kDense, Layout::kSteps, Layout::kUnaligned})
          add_op_case(row, dtype, layout_name(layout), duties_of_layout(layout), [layout](Context&, OpCall& call) {
            call.attributes.number(FLHAL_ATTR_ARANGE_START, 3, true).number(FLHAL_ATTR_ARANGE_STEP, 2, true);
            call.outputs.emplace_back(call.compute, Sizes{50}, layout);
            call.expected.emplace_back(50);
            for (size_t i = 0; i < 50; ++i) call.expected[0].set(i, 3 + 2 * static_cast<double>(i), 0);
          });
    }
  }
  return true;
}

}  // namespace flhal::conformance
