// conformance/areas/op_training.cc: what training adds: statistics, gradients of norms and pooling, random numbers.
#include <flhal/ops.h>

#include <cmath>

#include "areas/op_cases.h"

namespace flhal::conformance {
namespace {

constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kGaps, Layout::kSteps, Layout::kUnaligned};

Tensor of_values(flhal_dtype dtype, const Sizes& sizes, const std::vector<double>& v) {
  Tensor t(dtype, sizes);
  t.fill_with([&](int64_t i) { return v[static_cast<size_t>(i)]; });
  return t;
}
// The channel, or the row, that each element belongs to; and its place in the last `n_dims` dimensions.
std::vector<int64_t> channels_of(const Sizes& sizes) {
  std::vector<int64_t> of;
  for (int64_t i = 0; i < count_of(sizes); ++i) of.push_back(index_of(i, sizes)[1]);
  return of;
}
std::vector<int64_t> divided(int64_t n, int64_t by, bool rest) {
  std::vector<int64_t> of;
  for (int64_t i = 0; i < n; ++i) of.push_back(rest ? i % by : i / by);
  return of;
}

void layer_norm_statistics(Context& ctx, OpCall& call) {
  Sizes sizes = {4, 24}, rows = {4, 1};
  call.inputs.push_back(filled(ctx, "layer_norm", 0, call.compute, sizes));
  call.inputs.emplace_back(), call.inputs.emplace_back();
  Values x = call.inputs[0].values();
  Statistics s = statistics_of(x, divided(96, 24, false), 4, 1e-5);
  for (const Sizes& of : {sizes, rows, rows}) call.outputs.emplace_back(call.compute, of);
  call.expected = {layer_norm(x, {{}, {}, false}, {{}, {}, false}, 1, 1e-5), s.mean, s.rstd};
}
void layer_norm_backward(Context& ctx, OpCall& call, Layout layout, bool weighted) {
  Sizes sizes = {6, 24}, rows = {6, 1}, tail = {24};
  for (size_t i = 0; i < 2; ++i) call.inputs.push_back(filled(ctx, "layer_norm", i, call.compute, sizes, layout));
  Values x = call.inputs[1].values();
  auto group = divided(144, 24, false), column = divided(144, 24, true);
  Statistics s = statistics_of(x, group, 6, 1e-5);
  call.inputs.push_back(of_values(call.compute, rows, s.mean.value));
  call.inputs.push_back(of_values(call.compute, rows, s.rstd.value));
  if (weighted) call.inputs.push_back(filled(ctx, "layer_norm", 2, call.compute, tail));
  else call.inputs.emplace_back();
  NormGradients g = norm_backward(call.inputs[0].values(), x, call.inputs[2].values(), call.inputs[3].values(), call.inputs[4].values(), group, column, 24, false);
  call.outputs.emplace_back(call.compute, sizes, layout);
  for (int i = 0; i < 2; ++i) call.outputs.emplace_back(call.compute, tail);
  call.expected = {g.x, g.weight, g.bias};
}

void batch_norm_training(Context& ctx, OpCall& call, Layout layout) {
  Sizes sizes = {3, 4, 5, 2}, channels = {4};
  call.attributes.integer(FLHAL_ATTR_BATCH_NORM_TRAINING, 1);
  call.inputs.push_back(filled(ctx, "batch_norm", 0, call.compute, sizes, layout));
  for (size_t i = 1; i < 3; ++i) call.inputs.push_back(filled(ctx, "batch_norm", i, call.compute, channels));
  call.inputs.emplace_back(), call.inputs.emplace_back();
  Values x = call.inputs[0].values();
  Statistics s = statistics_of(x, channels_of(sizes), 4, 1e-5);
  Values mean{channels, s.mean.value}, var{channels, {}};
  for (double r : s.rstd.value) var.v.push_back(1 / (r * r) - 1e-5);
  call.outputs.emplace_back(call.compute, sizes, layout);
  for (int i = 0; i < 2; ++i) call.outputs.emplace_back(call.compute, channels);
  Expected out = batch_norm(x, call.inputs[1].values(), call.inputs[2].values(), mean, var, 1e-5);
  out.terms = s.mean.terms;
  call.expected = {out, s.mean, s.rstd};
}
// The running statistics move by momentum; the variance they take is the unbiased one, as in every framework.
void batch_norm_running(Context& ctx, OpCall& call, double momentum) {
  batch_norm_training(ctx, call, Layout::kDense);
  if (momentum != 0.1) call.attributes.number(FLHAL_ATTR_BATCH_NORM_MOMENTUM, momentum);
  const double n = 3 * 5 * 2;
  Statistics s = statistics_of(call.inputs[0].values(), channels_of(call.inputs[0].sizes), 4, 1e-5);
  call.inputs[3] = filled(ctx, "batch_norm", 3, call.compute, {4});
  call.inputs[4] = filled(ctx, "sqrt", 0, call.compute, {4});
  for (size_t which : {3, 4}) {
    Expected e(4);
    for (size_t c = 0; c < 4; ++c) {
      double rstd = s.rstd.value[c], old = call.inputs[which].get(static_cast<int64_t>(c));
      double fresh = which == 3 ? s.mean.value[c] : (1 / (rstd * rstd) - 1e-5) * n / (n - 1);
      e.set(c, (1 - momentum) * old + momentum * fresh, std::max(std::fabs(old), s.mean.magnitude[c] * s.mean.magnitude[c] + std::fabs(fresh)));
    }
    e.terms = s.mean.terms;
    call.written.emplace(which, std::move(e));
  }
}
void batch_norm_backward(Context& ctx, OpCall& call, Layout layout, bool training) {
  Sizes sizes = {3, 4, 5, 2}, channels = {4};
  if (training) call.attributes.integer(FLHAL_ATTR_BATCH_NORM_BACKWARD_TRAINING, 1);
  for (size_t i = 0; i < 2; ++i) call.inputs.push_back(filled(ctx, "batch_norm", i, call.compute, sizes, layout));
  call.inputs.push_back(filled(ctx, "batch_norm", 2, call.compute, channels));
  Values x = call.inputs[1].values();
  auto group = channels_of(sizes);
  Statistics s = statistics_of(x, group, 4, 1e-5);
  Values mean, rstd;
  if (training) {
    call.inputs.emplace_back(), call.inputs.emplace_back();
    call.inputs.push_back(of_values(call.compute, channels, s.mean.value));
    call.inputs.push_back(of_values(call.compute, channels, s.rstd.value));
    mean = call.inputs[5].values(), rstd = call.inputs[6].values();
  } else {
    call.inputs.push_back(filled(ctx, "batch_norm", 3, call.compute, channels));
    call.inputs.push_back(filled(ctx, "sqrt", 0, call.compute, channels));
    call.inputs.emplace_back(), call.inputs.emplace_back();
    mean = rstd = call.inputs[3].values();
    for (int64_t c = 0; c < 4; ++c) rstd.v[static_cast<size_t>(c)] = 1 / std::sqrt(call.inputs[4].get(c) + 1e-5);
  }
  NormGradients g = norm_backward(call.inputs[0].values(), x, mean, rstd, call.inputs[2].values(), group, group, 4, !training);
  call.outputs.emplace_back(call.compute, sizes, layout);
  for (int i = 0; i < 2; ++i) call.outputs.emplace_back(call.compute, channels);
  call.expected = {g.x, g.weight, g.bias};
}

void pool_backward(Context& ctx, OpCall& call, Layout layout) {
  Sizes grad = {2, 3, 4, 3}, gx = {2, 3, 8, 6};
  call.inputs.push_back(filled(ctx, "max_pool2d_backward", 0, call.compute, grad, layout));
  Tensor index(FLHAL_I64, grad);
  index.fill_with([&](int64_t) { return static_cast<double>(ctx.random()() % 48); });   // the same place more than once, too
  call.inputs.push_back(std::move(index));
  call.outputs.emplace_back(call.compute, gx, layout);
  call.expected.push_back(max_pool2d_backward(call.inputs[0].values(), call.inputs[1].values(), gx));
}

struct Draw { const char *op, *name; double first, second; };
const std::vector<Draw>& draws() {
  static const std::vector<Draw> all = {{"uniform", "unit", 0, 1}, {"uniform", "range", -3, 5}, {"normal", "standard", 0, 1}, {"normal", "moved", 2, 0.5},
                                        {"bernoulli", "half", 0.5, 0}, {"bernoulli", "rare", 0.125, 0}, {"randint", "range", 3, 90}};
  return all;
}
void draw(OpCall& call, const Draw& d, Layout layout) {
  constexpr uint64_t kSeed = 0x123456789abcdef0, kOffset = 77;
  uint32_t key = call.row->number << 8;
  call.attributes.philox(key | 1, kSeed, kOffset);
  call.attributes.number(key | 2, d.first, true);
  if (std::string(d.op) != "bernoulli") call.attributes.number(key | 3, d.second, true);
  Sizes sizes = {5, 7, 3};
  int bits = call.compute == FLHAL_F64 ? 32 : call.compute == FLHAL_F16 ? 11 : call.compute == FLHAL_BF16 ? 8 : 24;
  call.outputs.emplace_back(call.compute, sizes, layout);
  call.expected.push_back(random_numbers(d.op, count_of(sizes), kSeed, kOffset, d.first, d.second, bits));
  // The op set has normal numbers computed in float32 for every dtype, so that is what their rounding is relative to.
  if (std::string(d.op) == "normal" && call.compute == FLHAL_F64)
    for (double& m : call.expected[0].magnitude) m *= 0x1p29;
}

}  // namespace

FLHAL_CASES() {
  for (const OpRow& row : op_rows()) {
    std::string op = row.name;
    for (flhal_dtype dtype : dtypes_of_row(row)) {
      // Statistics have the dtype of the arithmetic; with halves that is another one than the operands'.
      bool norms = dtype == FLHAL_F32 || dtype == FLHAL_F64;
      for (Layout layout : kLayouts) {
        if (layout != Layout::kDense && dtype != FLHAL_F32) continue;
        auto add = [&](const std::string& name, std::function<void(Context&, OpCall&)> make) {
          add_op_case(row, dtype, layout == Layout::kDense ? name : name + "_" + layout_name(layout), duties_of_layout(layout), std::move(make));
        };
        if (op == "layer_norm" && norms && layout == Layout::kDense) add("statistics", layer_norm_statistics);
        if (op == "layer_norm_backward" && norms) {
          add("weighted", [layout](Context& c, OpCall& call) { layer_norm_backward(c, call, layout, true); });
          add("plain", [layout](Context& c, OpCall& call) { layer_norm_backward(c, call, layout, false); });
        }
        if (op == "batch_norm" && norms && layout == Layout::kDense) {
          add("running", [](Context& c, OpCall& call) { batch_norm_running(c, call, 0.1); });
          add("running_momentum", [](Context& c, OpCall& call) { batch_norm_running(c, call, 0.75); });
        }
        if (op == "batch_norm" && norms) add("training", [layout](Context& c, OpCall& call) { batch_norm_training(c, call, layout); });
        if (op == "batch_norm_backward" && norms) {
          add("training", [layout](Context& c, OpCall& call) { batch_norm_backward(c, call, layout, true); });
          add("inference", [layout](Context& c, OpCall& call) { batch_norm_backward(c, call, layout, false); });
        }
        if (op == "max_pool2d_backward") add("windows", [layout](Context& c, OpCall& call) { pool_backward(c, call, layout); });
        for (const Draw& d : draws())
          if (op == d.op && dtype != FLHAL_U8 && !(op == "randint" && (dtype == FLHAL_BOOL || dtype == FLHAL_F16 || dtype == FLHAL_BF16)))
            add(d.name, [&d, layout](Context&, OpCall& call) { draw(call, d, layout); });
      }
    }
  }
  return true;
}

}  // namespace flhal::conformance
