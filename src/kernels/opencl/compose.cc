// src/kernels/opencl/compose.cc: the head of every source, and the plan that runs it.
#include "kernels/opencl/compose.h"

#include <cstring>

namespace flhal::kernels {
namespace {

constexpr const char* kKindNames[kKinds] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
                                            "f16", "bf16", "f32", "f64", "c64", "c128", "bool"};
constexpr const char* kTypeNames[kKinds] = {"char", "short", "int", "long", "uchar", "ushort", "uint", "ulong"};
constexpr const char* kComputeMacros[kComputes] = {"C_F32", "C_F64", "C_I64", "C_I32", "C_BOOL", ""};

struct Family {
  const char* name;                // a prefix of the function names
  ShapeMaker make;
};
// The first prefix that fits decides; whatever is left is a row of exprs.def.
constexpr Family kFamilies[] = {
    {"sum", shape_rows}, {"mean", shape_rows}, {"prod", shape_rows}, {"amax", shape_rows}, {"amin", shape_rows},
    {"norm2", shape_rows}, {"any", shape_rows}, {"all", shape_rows}, {"argm", shape_rows}, {"var", shape_rows},
    {"cumsum", shape_rows}, {"softmax", shape_rows}, {"log_softmax", shape_rows}, {"layer_norm", shape_rows},
    {"batch_norm", shape_rows}, {"matmul", shape_matmul}, {"conv2d", shape_conv}, {"max_pool2d", shape_pool},
    {"avg_pool2d", shape_pool}, {"gather", shape_index}, {"scatter", shape_index}, {"random_", shape_series},
    {"arange", shape_series}, {"tril", shape_series}, {"triu", shape_series}, {"", shape_pointwise}};

// An absent operand as memory that is never read.
void stand_in(LaunchArgs& args, uint32_t operand) {
  if (operand == 0 || args.args[operand + 1].kind != FLHAL_ARG_VALUE) return;
  args.args[operand + 1] = args.args[1];
  args.operand[operand + 1] = args.operand[1];
}

struct TextPlan final : KernelPlan {
  PlanPtr host_plan;
  TextShape shape;
  Schedule schedule = Schedule::kFat;
  bool absent_operand = false;                         // shape.stand_in is not given
  bool converts[8] = {};                               // operand k is a host scalar of another kind than the compute type

  void arguments(const Call& call, LaunchArgs& out) const override {
    host_plan->arguments(call, out);
    out.args[0].size = shape.params_bytes;
    if (absent_operand) stand_in(out, shape.stand_in);
    shape.schedule(out.values, out, schedule);
    if (shape.compute == kCF32 && !shape.raw_type) {
      for (uint32_t i = 0; i < shape.doubles; ++i) {
        unsigned char* at = out.values + shape.doubles_at + i * 8;
        double wide;
        std::memcpy(&wide, at, 8);
        float narrow = static_cast<float>(wide);
        std::memset(at, 0, 8);
        std::memcpy(at, &narrow, 4);
      }
    }
    auto* at = static_cast<int64_t*>(add_value(out, 64));
    const uint32_t n = out.n_args - 1;
    for (uint32_t i = 1; i < n; ++i) {
      flhal_p_arg& arg = out.args[i];
      if (arg.kind != FLHAL_ARG_MEMORY) {
        // A host scalar is converted here, so that its dtype makes no class of its own.
        if (converts[i - 1]) {
          alignas(16) unsigned char wide[16] = {};
          level().convert_one(wide, kComputeKind[shape.compute], arg.value, shape.kind[i - 1]);
          std::memcpy(const_cast<void*>(arg.value), wide, 16);
        }
        arg.size = 16;
        continue;
      }
      at[i - 1] = static_cast<int64_t>(arg.offset);
      if (arg.address) arg.address -= arg.offset;
      arg.offset = 0;
    }
    if (can_fail) {
      at[6] = static_cast<int64_t>(out.call_number);
      at[7] = static_cast<int64_t>(out.error_offset);
      flhal_p_arg& arg = out.args[out.n_args];
      arg = {FLHAL_ARG_MEMORY, 0, nullptr, out.error_memory, 0, out.error_address};
      out.operand[out.n_args++] = -1;
    }
    if (shape.local_bytes) {
      out.args[out.n_args] = {FLHAL_ARG_LOCAL, shape.local_bytes, nullptr, nullptr, 0, 0};
      out.operand[out.n_args++] = -1;
    }
  }
};

std::string source_of(const TextShape& shape, const LaunchArgs& args, bool can_fail, const Target& target) {
  const bool fp64 = shape.compute == kCF64 ? true : [&] {
    for (uint32_t k = 0; k < shape.n_operands; ++k)
      if (shape.kind[k] == kF64 && !shape.raw_type && args.args[k + 1].kind == FLHAL_ARG_MEMORY) return true;
    return false;
  }();
  std::string s;
  auto define = [&](const std::string& name, const std::string& value) { s += "#define " + name + " " + value + "\n"; };
  define("FAT", target.schedule == Schedule::kFat ? "1" : "0");
  define("VECTOR_BYTES", std::to_string(target.vector_bytes));
  define("FP64", fp64 ? "1" : "0");
  define("COMPUTE", shape.raw_type ? "C_RAW" : kComputeMacros[shape.compute]);
  if (shape.raw_type) {
    define("RAW_TYPE", shape.raw_type);
    define("RAW_VALUE(v)", std::string(shape.raw_type) == "ulong2" ? "(v)" : "T((v).x)");
  }
  s += shape.defines;
  s += kernel_text("prelude/opencl.h");
  if (shape.math) s += kernel_text("prelude/opencl_math.h");
  std::string parameters, bases, passed;
  for (uint32_t k = 0; k < shape.n_operands; ++k) {
    const std::string n = std::to_string(k);
    const bool value = args.args[k + 1].kind != FLHAL_ARG_MEMORY;
    const Kind stored = value && !shape.raw_type && !shape.whole[k] ? kComputeKind[shape.compute] : shape.kind[k];
    const std::string kind = shape.raw_type ? "raw" : kKindNames[stored];
    parameters += value ? ", const ulong2 m" + n : ", __global uchar* restrict m" + n;
    passed += ", m" + n;
    if (!value) bases += "MEMORY q" + n + " = m" + n + " + at.at[" + n + "]; ";
    std::string load = value ? "value_" + kind + "(m" + n + ")" : "load_" + kind + "(q" + n + ", o)";
    if (shape.whole[k]) {
      const std::string type = kTypeNames[shape.kind[k]];
      define("LOAD" + n + "(o)", value ? "((long)(" + type + ")(m" + n + ").x)" : "((long)GET(" + type + ", q" + n + ", o))");
      if (!value) define("STORE" + n + "(o, v)", "PUT(" + type + ", q" + n + ", o, (" + type + ")(v))");
      define("BYTES" + n, std::to_string(kKindBytes[shape.kind[k]]));
      define("GIVEN" + n, value ? "0" : "1");
      continue;
    }
    if (shape.truth[k]) load = "(uchar)(" + load + " != T(0))";
    define("LOAD" + n + "(o)", load);
    if (!value) define("STORE" + n + "(o, v)", "store_" + kind + "(q" + n + ", o, v)");
    define("BYTES" + n, std::to_string(kKindBytes[stored]));
    define("GIVEN" + n, value ? "0" : "1");
  }
  define("ARGUMENTS", parameters);
  define("PASSED", passed);
  if (can_fail) define("FAULTS", "(volatile __global uint*)(faults + at.at[7]), at.at[6]");
  define("MORE_ARGUMENTS", std::string(can_fail ? ", __global uchar* faults" : "") + (shape.local_bytes ? ", __local uchar* scratch" : ""));
  define("BASES", bases);
  s += shape.after;
  s += kernel_text(shape.text);
  return s;
}

}  // namespace

PlanPtr make_text_plan(PlanPtr host, const Call& proto, const Target& target, const char** reason) {
  LaunchArgs args;
  host->arguments(proto, args);
  std::string function = host->function;
  const size_t cut = function.rfind('_');
  TextRequest request{proto, args, args.values, function.substr(0, cut), function.substr(cut + 1), target};
  auto plan = std::make_unique<TextPlan>();
  ShapeMaker make = nullptr;
  for (const Family& family : kFamilies)
    if (request.base.rfind(family.name, 0) == 0) { make = family.make; break; }
  static constexpr const char* kTypes[kComputes] = {"f32", "f64", "i64", "i32", "bool", "c128"};
  for (int c = 0; c < kComputes; ++c)
    if (request.type == kTypes[c]) plan->shape.compute = static_cast<Compute>(c);
  if (plan->shape.compute == kCC128) { *reason = "the OpenCL texts have no complex arithmetic yet"; return nullptr; }
  if (!make(request, plan->shape, reason)) return nullptr;
  if (const uint32_t k = plan->shape.stand_in; k && args.args[k + 1].kind == FLHAL_ARG_VALUE && !given(proto, k)) {
    plan->absent_operand = true;
    plan->shape.kind[k] = plan->shape.kind[0];
    stand_in(args, k);
  }
  const TextShape& shape = plan->shape;
  if (!shape.raw_type)
    for (uint32_t k = 0; k < shape.n_operands; ++k) {
      if (shape.kind[k] == kC64 || shape.kind[k] == kC128) { *reason = "the OpenCL texts have no complex arithmetic yet"; return nullptr; }
      if (shape.kind[k] == kF64 && !target.fp64 && args.args[k + 1].kind == FLHAL_ARG_MEMORY) { *reason = "the chip has no float64"; return nullptr; }
    }
  if (shape.compute == kCF64 && !target.fp64) { *reason = "the chip has no float64"; return nullptr; }
  for (uint32_t k = 0; k < shape.n_operands; ++k) {
    const flhal_p_arg& arg = args.args[k + 1];
    plan->converts[k] = arg.kind == FLHAL_ARG_VALUE && !shape.raw_type && !shape.whole[k] && args.values <= arg.value &&
                        shape.kind[k] != kComputeKind[shape.compute];
  }
  plan->schedule = target.schedule;
  plan->can_fail = host->can_fail;
  plan->depends_on = host->depends_on;
  plan->function = "run";
  const bool single = shape.compute == kCF32 && !shape.raw_type;
  plan->text = interned_text(function + (target.schedule == Schedule::kFat ? ".fat" : ".thin"),
                             source_of(shape, args, host->can_fail, target),
                             single ? "-cl-single-precision-constant" : "");
  plan->host_plan = std::move(host);
  return plan;
}

}  // namespace flhal::kernels
