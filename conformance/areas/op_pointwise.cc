// conformance/areas/op_pointwise.cc: the pointwise family: every dtype, layout, broadcast, in place, empty.
#include <flhal/ops.h>

#include <cmath>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

const Sizes kSizes = {3, 5, 7};

// An operand that is a condition, whatever the op's dtype.
bool is_condition(const std::string& op, size_t which) { return (op == "where" && which == 0) || (op == "masked_fill" && which == 1); }

struct Shape {
  Layout in = Layout::kDense, out = Layout::kDense;
  Sizes sizes = kSizes;
  bool broadcast = false, expanded = false, host_scalar = false, in_place = false, special = false;
  bool mixed = false;                                // operands of other types than the arithmetic's, each of another one
  int absent = -1;                                   // an optional input that is not given
};

void make(Context& ctx, OpCall& call, const Shape& s) {
  const OpRow& row = *call.row;
  std::string op = row.name;
  size_t n = input_names(row).size();
  for (size_t i = 0; i < n; ++i) {
    static const flhal_dtype kMixed[] = {FLHAL_I32, FLHAL_F16, FLHAL_U8};
    flhal_dtype dtype = is_condition(op, i) ? FLHAL_BOOL : s.mixed ? kMixed[(i + n - 1) % 3] : call.compute;
    if (s.absent == static_cast<int>(i)) {
      call.inputs.emplace_back();
    } else if (s.host_scalar && i + 1 == n) {
      call.inputs.push_back(Tensor::host_scalar(dtype, suitable_value(op, i, dtype, 13)));
    } else if (s.broadcast && i > 0) {
      call.inputs.push_back(filled(ctx, op, i, dtype, i == 1 ? Sizes{5, 1} : Sizes{1, 1, 7}, s.in));
    } else if (s.expanded && i == 0) {
      Sizes thin = s.sizes;
      thin[0] = 1;
      Tensor t = filled(ctx, op, i, dtype, thin, s.in);
      t.sizes[0] = s.sizes[0], t.strides[0] = 0;
      call.inputs.push_back(std::move(t));
    } else {
      call.inputs.push_back(filled(ctx, op, i, dtype, s.sizes, s.in));
    }
    if (s.special && call.inputs[i].given && dtype != FLHAL_BOOL) {
      static const double kSpecial[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1.0, -1.0, 0.5};
      call.inputs[i].fill_with([&](int64_t k) { return kSpecial[(static_cast<size_t>(k) / (i == 0 ? 1 : 8)) % 8]; });
    }
  }
  std::vector<Values> values;
  for (const Tensor& t : call.inputs) values.push_back(t.values());
  // For bool "not" is the logical one.
  call.expected.push_back(pointwise(op == "bitwise_not" && call.compute == FLHAL_BOOL ? "logical_not" : op, values, s.sizes, call.attributes));
  flhal_dtype out = output_dtype(row, call.compute);
  if (s.mixed && out == call.compute) out = FLHAL_F64;
  if (s.in_place) {
    call.outputs.push_back(std::move(call.inputs[0]));
    call.inputs[0] = Tensor();
    call.n_in_place = 1;
  } else {
    call.outputs.emplace_back(out, s.sizes, s.out);
  }
}

void add(const OpRow& row, flhal_dtype dtype, const std::string& variant, const std::string& duties, const Shape& shape,
         const std::function<void(Attributes&)>& attributes = nullptr) {
  add_op_case(row, dtype, variant, duties, [shape, attributes](Context& ctx, OpCall& call) {
    if (attributes) attributes(call.attributes);
    make(ctx, call, shape);
  });
}

// Attributes that differ from their defaults.
struct Variant { const char *op, *name; std::function<void(Attributes&)> set; int absent = -1; };
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"add", "alpha", [](Attributes& a) { a.number(FLHAL_ATTR_ADD_ALPHA, 2, true); }},
      {"sub", "alpha", [](Attributes& a) { a.number(FLHAL_ATTR_SUB_ALPHA, 2, true); }},
      {"gelu", "tanh", [](Attributes& a) { a.integer(FLHAL_ATTR_GELU_APPROXIMATE, 1); }},
      {"gelu_backward", "tanh", [](Attributes& a) { a.integer(FLHAL_ATTR_GELU_BACKWARD_APPROXIMATE, 1); }},
      {"softplus", "beta", [](Attributes& a) { a.number(FLHAL_ATTR_SOFTPLUS_BETA, 2); }},
      {"softplus", "threshold", [](Attributes& a) { a.number(FLHAL_ATTR_SOFTPLUS_THRESHOLD, 1); }},
      {"leaky_relu", "slope", [](Attributes& a) { a.number(FLHAL_ATTR_LEAKY_RELU_SLOPE, 0.25); }},
      {"hardtanh", "range", [](Attributes& a) { a.number(FLHAL_ATTR_HARDTANH_MIN, 0).number(FLHAL_ATTR_HARDTANH_MAX, 6); }},
      {"elu", "scales", [](Attributes& a) { a.number(FLHAL_ATTR_ELU_ALPHA, 1.5).number(FLHAL_ATTR_ELU_SCALE, 1.25); }},
      {"relu_backward", "threshold", [](Attributes& a) { a.number(FLHAL_ATTR_RELU_BACKWARD_THRESHOLD, 1); }},
      {"addcmul", "value", [](Attributes& a) { a.number(FLHAL_ATTR_ADDCMUL_VALUE, 0.5, true); }},
      {"addcdiv", "value", [](Attributes& a) { a.number(FLHAL_ATTR_ADDCDIV_VALUE, 0.5, true); }},
      {"clamp", "without_min", nullptr, 1},
      {"clamp", "without_max", nullptr, 2},
  };
  return all;
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    if (std::string(row.family) != "pointwise") continue;
    size_t n = input_names(row).size();
    for (flhal_dtype dtype : dtypes_of_row(row)) {
      bool first = dtype == dtypes_of_row(row)[0], whole = dtype == FLHAL_I32;
      for (Layout layout : {Layout::kDense, Layout::kTransposed, Layout::kGaps, Layout::kSteps, Layout::kUnaligned})
        if (first || layout < Layout::kGaps || (whole && layout != Layout::kSteps)) {
          Shape s;
          s.in = layout;
          if (layout != Layout::kTransposed) s.out = layout;
          add(row, dtype, layout_name(layout), duties_of_layout(layout), s);
        }
      if (!first && !whole) continue;
      auto with = [&](const char* name, const char* duties, auto change) {
        Shape s;
        change(s);
        add(row, dtype, name, duties, s);
      };
      bool same_type = output_dtype(row, dtype) == dtype && !is_condition(row.name, 0);
      if (row.in_place && same_type) with("in_place", "FLP-079 FLP-084", [](Shape& s) { s.in_place = true; });
      with("empty", "FLP-088", [](Shape& s) { s.sizes = {3, 0, 7}; });
      if (n > 1) with("host_scalar", "FLP-079 FLP-080", [](Shape& s) { s.host_scalar = true; });
      if (!first) continue;
      with("transposed_out", "FLP-079 FLP-081 FLP-083", [](Shape& s) { s.out = Layout::kTransposed; });
      with("expanded", "FLP-079 FLP-081", [](Shape& s) { s.expanded = true; });
      if (n > 1) with("broadcast", "FLP-079 FLP-081", [](Shape& s) { s.broadcast = true; });
      if (dtype == FLHAL_F32) with("mixed", "FLP-079 FLP-080", [](Shape& s) { s.mixed = true; });
      with("rank_0", "FLP-079 FLP-080", [](Shape& s) { s.sizes = {}; });
      with("large", kValueDuties, [](Shape& s) { s.sizes = {33, 129}; });
      if (is_float(dtype)) with("special", "FLP-079 FLP-080", [](Shape& s) { s.special = true, s.sizes = {8, 8}; });
      for (const Variant& v : variants())
        if (std::string(v.op) == row.name) {
          Shape s;
          s.absent = v.absent;
          add(row, dtype, v.name, "FLP-079 FLP-080", s, v.set);
        }
    }
  }
  return true;
}

}  // namespace flhal::conformance
