// src/kernels/opencl/rows.cc: reductions, softmax and norms as text/rows_*.clk.
#include <cstring>

#include "kernels/norm_flags.h"
#include "kernels/opencl/compose.h"

namespace flhal::kernels {
namespace {

constexpr uint32_t kTextDims = 11;     // of ROWS::dims: a VALUE must stay below 1 KiB

struct ReductionText { const char* name; const char* init; const char* lift; const char* merge; const char* finish; };
constexpr ReductionText kReductionTexts[] = {
#define REDUCTION(name, cls, init, lift, merge, finish) {#name, #init, #lift, #merge, #finish},
#include "kernels/reductions.def"
#undef REDUCTION
};

void schedule_rows(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<RowsParams*>(params);
  uint64_t units = out.groups[0];
  if (schedule == Schedule::kThin) {
    p->rows_per_group = 1;
    p->columns = 0;
    units = p->n_rows;
  }
  set_units(out, units, schedule);
}
void schedule_layer_norm_backward(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<RowsParams*>(params);
  uint64_t units = out.groups[0];
  if (schedule == Schedule::kThin) {
    p->rows_per_group = 1;
    p->i[0] = p->flags & kHasGradInput ? static_cast<int64_t>(p->n_rows) : 0;
    p->i[1] = 1;
    units = static_cast<uint64_t>(p->i[0]) + (p->flags & (kHasGradWeight | kHasGradBias) ? p->length : 0);
  }
  set_units(out, units, schedule);
}

}  // namespace

bool shape_rows(const TextRequest& request, TextShape& shape, const char** reason) {
  auto* p = reinterpret_cast<const RowsParams*>(request.params);
  for (uint32_t i = 0; i < tensor_count(request.proto); ++i)
    if (given(request.proto, i) && tensor_of(request.proto, i).rank > kTextDims) { *reason = "rank above 11"; return false; }
  shape.params_bytes = __builtin_offsetof(RowsParams, dims) + kTextDims * sizeof(RowDim);
  shape.doubles_at = __builtin_offsetof(RowsParams, f);
  shape.doubles = 4;
  shape.n_operands = p->n_operands;
  for (uint32_t k = 0; k < p->n_operands; ++k) shape.kind[k] = p->kind[k];
  shape.schedule = schedule_rows;
  shape.defines = "#define WIDE_LANES 1\n";
  auto define = [&](const std::string& name, const std::string& value) { shape.after += "#define " + name + " " + value + "\n"; };
  const std::string& base = request.base;
  if (base.find("softmax") != std::string::npos) {
    shape.text = "text/rows_softmax.clk";
    define("LOG", base.rfind("log_", 0) == 0 ? "1" : "0");
    define("BACKWARD", base.find("backward") != std::string::npos ? "1" : "0");
    return true;
  }
  if (base.find("_norm") != std::string::npos) {
    shape.text = "text/rows_norm.clk";
    if (base == "layer_norm_backward") shape.schedule = schedule_layer_norm_backward;
    define(base == "layer_norm" ? "LAYER" : base == "layer_norm_backward" ? "LAYER_BACKWARD" : base == "batch_norm" ? "BATCH" : "BATCH_BACKWARD", "1");
    return true;
  }
  shape.text = "text/rows_reduce.clk";
  if (base == "var" || base == "cumsum") {
    define(base == "var" ? "VAR" : "CUMSUM", "1");
    return true;
  }
  const bool arg = base.rfind("arg", 0) == 0;
  for (const ReductionText& r : kReductionTexts) {
    if ((arg ? base == std::string("arg") + (r.name + 1) : base == r.name) == false) continue;
    define(arg ? "ARG" : "REDUCE", "1");
    define("INIT_OF", r.init);
    define("LIFT_OF(x)", r.lift);
    define("MERGE_OF(a, b)", r.merge);
    define("FINISH(a, n)", r.finish);
    return true;
  }
  *reason = "no text for this reduction in OpenCL C yet";
  return false;
}

}  // namespace flhal::kernels
