// src/kernels/opencl/pointwise.cc: rows of exprs.def and copies of bytes as text/pointwise.clk.
#include "kernels/opencl/compose.h"

namespace flhal::kernels {
namespace {

struct ExprText { const char* name; const char* cls; uint8_t arity; const char* text; };
constexpr ExprText kExprTexts[] = {
#define EXPR(name, cls, arity, cost, text) {#name, #cls, arity, #text},
#define EXPR_SCALED(name, plain, scaled) {#name, "ALL", 2, "p0 == T(1) ? " #plain " : " #scaled},
#include "kernels/exprs.def"
#undef EXPR
#undef EXPR_SCALED
};

void schedule_pointwise(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<PointwiseParams*>(params);
  if (schedule == Schedule::kThin) p->chunk = 1;
  set_units(out, schedule == Schedule::kThin ? p->n : out.groups[0], schedule);
}

}  // namespace

bool shape_pointwise(const TextRequest& request, TextShape& shape, const char** reason) {
  // First of all: every kernel without a text of its own comes here, also one whose parameters are not PointwiseParams.
  const ExprText* row = nullptr;
  const bool raw = request.base == "copy_bytes";
  for (const ExprText& e : kExprTexts)
    if ((raw ? "copy" : request.base) == e.name) row = &e;
  if (!row) { *reason = "no text for this operator in OpenCL C yet"; return false; }
  auto* p = reinterpret_cast<const PointwiseParams*>(request.params);
  shape.text = "text/pointwise.clk";
  shape.params_bytes = sizeof(PointwiseParams);
  shape.doubles_at = __builtin_offsetof(PointwiseParams, pf);
  shape.doubles = 4;
  shape.schedule = schedule_pointwise;
  shape.n_operands = p->n_operands;
  for (uint32_t k = 0; k < p->n_operands; ++k) shape.kind[k] = p->kind[k];
  const bool test = row->cls[0] == 'C', select = row->cls[0] == 'S';
  std::string expression = row->text;
  if (raw) {
    const uint32_t bytes = kKindBytes[p->kind[0]];
    shape.raw_type = bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : bytes == 8 ? "ulong" : "ulong2";
    shape.math = false;
    shape.kind[1] = shape.kind[0];
  }
  auto single = [&](uint32_t k) {
    return k < p->n_operands && (request.args.args[k + 1].kind == FLHAL_ARG_VALUE ||
                                 tensor_of(request.proto, static_cast<uint32_t>(request.args.operand[k + 1])).rank == 0);
  };
  // An exponent that is one number and small: as exact as pow and many times faster; it is the same for every element.
  if (request.base == "pow" && shape.compute <= kCF64 && single(2))
    expression = "b == T(2) ? a * a : b == T(3) ? a * a * a : b == T(0.5f) ? sqrt(a) : b == T(-1) ? T(1) / a : power(a, b)";
  shape.truth[1] = select;
  auto define = [&](const std::string& name, const std::string& value) { shape.after += "#define " + name + " " + value + "\n"; };
  define("EXPRESSION", expression);
  define("ARITY", std::to_string(row->arity));
  define("A_T", select ? "uchar" : "T");
  define("OUT_T", test ? "uchar" : "T");
  for (uint32_t k = 1; k < 4; ++k) define("SINGLE" + std::to_string(k), single(k) ? "1" : "0");
  for (uint32_t k = p->n_operands; k < 4; ++k) define("BYTES" + std::to_string(k), "0");
  const bool integers = shape.compute == kCI64 || shape.compute == kCI32;
  const bool divides = integers && (request.base == "div_floor" || request.base == "div_trunc" || request.base == "remainder" || request.base == "fmod");
  define("DIVIDES", divides ? "1" : "0");
  return true;
}

}  // namespace flhal::kernels
