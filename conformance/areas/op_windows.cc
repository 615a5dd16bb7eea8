// conformance/areas/op_windows.cc: convolution, its gradients, pooling.
#include <flhal/ops.h>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

struct Shape {
  const char* name;
  Sizes x, w;                                // of pools: w is empty
  Window window;
  int64_t groups = 1;
  bool bias = false;
  Layout layout = Layout::kDense;
  bool more = true;                          // for the first dtype only
};

int64_t reached(int64_t size, const Window& w, int d) { return (size + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1) / w.stride[d] + 1; }

const std::vector<Shape>& convolutions() {
  static const std::vector<Shape> all = {
      {"plain", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {0, 0}, {1, 1}}, 1, false, Layout::kDense, false},
      {"bias", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, Layout::kDense, false},
      {"stride", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true},
      {"dilation", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {0, 0}, {2, 2}}, 1, true},
      {"groups", {2, 4, 9, 8}, {6, 2, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 2, true},
      {"depthwise", {2, 4, 9, 8}, {4, 1, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 4, true},
      {"one_pixel", {2, 8, 5, 7}, {6, 8, 1, 1}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1, true},
      {"oblong", {1, 3, 6, 11}, {5, 3, 1, 5}, {{1, 5}, {1, 2}, {0, 2}, {1, 1}}, 1, false},
      {"large", {1, 16, 20, 20}, {16, 16, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true},
      {"transposed", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, Layout::kTransposed},
      {"gaps", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, Layout::kGaps},
      {"steps", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, Layout::kSteps},
      {"unaligned", {2, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, Layout::kUnaligned},
      {"empty", {0, 4, 9, 8}, {6, 4, 3, 3}, {{3, 3}, {1, 1}, {0, 0}, {1, 1}}, 1, false},
  };
  return all;
}
const std::vector<Shape>& pools() {
  static const std::vector<Shape> all = {
      {"plain", {2, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, false, Layout::kDense, false},
      {"overlap", {2, 3, 9, 7}, {}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, Layout::kDense, false},
      {"oblong", {1, 2, 9, 7}, {}, {{3, 2}, {1, 2}, {1, 0}, {1, 1}}},
      {"transposed", {2, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, false, Layout::kTransposed},
      {"gaps", {2, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, false, Layout::kGaps},
      {"steps", {2, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, false, Layout::kSteps},
      {"unaligned", {2, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, false, Layout::kUnaligned},
      {"empty", {0, 3, 8, 6}, {}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}},
  };
  return all;
}

std::string duties(const Shape& s) { return s.x[0] == 0 ? "FLP-088" : duties_of_layout(s.layout); }

// Attributes stride, padding, dilation and groups have the numbers 1 to 4 in the three convolutions.
void set_window(OpCall& call, const Shape& s) {
  uint32_t key = call.row->number << 8;
  const Window& w = s.window;
  if (w.stride[0] != 1 || w.stride[1] != 1) call.attributes.ints(key | 1, w.stride[0], w.stride[1]);
  if (w.padding[0] != 0 || w.padding[1] != 0) call.attributes.ints(key | 2, w.padding[0], w.padding[1]);
  if (w.dilation[0] != 1 || w.dilation[1] != 1) call.attributes.ints(key | 3, w.dilation[0], w.dilation[1]);
  if (s.groups != 1) call.attributes.integer(key | 4, s.groups);
}

void convolve(Context& ctx, OpCall& call, const Shape& s) {
  std::string op = call.row->name;
  set_window(call, s);
  Sizes out = {s.x[0], s.w[0], reached(s.x[2], s.window, 0), reached(s.x[3], s.window, 1)};
  auto tensor = [&](size_t which, const Sizes& sizes) { return filled(ctx, op, which, call.compute, sizes, sizes.size() == 4 ? s.layout : Layout::kDense); };
  if (op == "conv2d") {
    call.inputs.push_back(tensor(0, s.x));
    call.inputs.push_back(tensor(1, s.w));
    if (s.bias) call.inputs.push_back(tensor(2, {s.w[0]}));
    else call.inputs.emplace_back();
    call.outputs.emplace_back(call.compute, out, s.layout);
    call.expected.push_back(conv2d(call.inputs[0].values(), call.inputs[1].values(), call.inputs[2].values(), out, s.window, s.groups));
  } else {
    bool input = op == "conv2d_backward_input";
    call.inputs.push_back(tensor(0, out));
    call.inputs.push_back(tensor(1, input ? s.w : s.x));
    call.outputs.emplace_back(call.compute, input ? s.x : s.w, s.layout);
    Values grad = call.inputs[0].values(), other = call.inputs[1].values();
    call.expected.push_back(input ? conv2d_backward_input(grad, other, s.x, s.window, s.groups) : conv2d_backward_weight(grad, other, s.w, s.window, s.groups));
  }
}

void pool(Context& ctx, OpCall& call, const Shape& s, bool with_index) {
  bool average = std::string(call.row->name) == "avg_pool2d";
  const Window& w = s.window;
  uint32_t key = call.row->number << 8;
  call.attributes.ints(key | 1, w.kernel[0], w.kernel[1]).ints(key | 2, w.stride[0], w.stride[1]);
  if (w.padding[0] != 0 || w.padding[1] != 0) call.attributes.ints(key | 3, w.padding[0], w.padding[1]);
  Sizes out = {s.x[0], s.x[1], reached(s.x[2], w, 0), reached(s.x[3], w, 1)};
  call.inputs.push_back(filled(ctx, call.row->name, 0, call.compute, s.x, s.layout));
  call.outputs.emplace_back(call.compute, out, s.layout);
  if (average) {
    call.expected.push_back(avg_pool2d(call.inputs[0].values(), out, w, true, 0));
    return;
  }
  Expected index(count_of(out));
  call.expected.push_back(max_pool2d(call.inputs[0].values(), out, w, &index));
  if (!with_index) return void(call.outputs.emplace_back());
  call.outputs.emplace_back(FLHAL_I64, out);
  call.expected.push_back(index);
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    std::string op = row.name;
    bool convolution = op.rfind("conv2d", 0) == 0, pooling = op == "max_pool2d" || op == "avg_pool2d";
    if (!convolution && !pooling) continue;
    for (flhal_dtype dtype : dtypes_of_row(row))
      for (const Shape& s : convolution ? convolutions() : pools()) {
        if (s.more && dtype != FLHAL_F32) continue;
        // The gradients of an empty batch are sums of nothing; of the input there is none.
        if (convolution) add_op_case(row, dtype, s.name, duties(s), [&s](Context& ctx, OpCall& call) { convolve(ctx, call, s); });
        else add_op_case(row, dtype, s.name, duties(s), [&s](Context& ctx, OpCall& call) { pool(ctx, call, s, false); });
        if (op == "max_pool2d" && is_float(dtype) && !s.more)
          add_op_case(row, dtype, std::string(s.name) + "_index", duties(s), [&s](Context& ctx, OpCall& call) { pool(ctx, call, s, true); });
      }
  }
  return true;
}

}  // namespace flhal::conformance
