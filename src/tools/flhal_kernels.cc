// src/tools/flhal_kernels.cc: the portable kernels as files, for makers whose compiler does not run on the user's machine.
//
//   flhal-kernels export --dialect opencl-c [--schedule fat|thin] [--vector-bytes N] [--no-fp64] [--out FOLDER]
//
// Without --out it lists names, hashes and options. Idea: it plans one call of every class of one dtype: each op of the op
// set, each dtype, with tensors, with its last input as a host scalar, and without optional operands. Classes of mixed
// dtypes are made when a program asks for them, and are not here.
#include <flhal/ops.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/opset/opset.h"
#include "kernels/kernel_plan.h"

namespace flhal {
namespace {

constexpr flhal_dtype kDtypes[] = {FLHAL_F32, FLHAL_F16, FLHAL_BF16, FLHAL_F64, FLHAL_I64, FLHAL_I32, FLHAL_I16, FLHAL_I8,
                                   FLHAL_U8, FLHAL_U16, FLHAL_U32, FLHAL_U64, FLHAL_BOOL};

enum Variant : uint32_t { kTensors = 0, kHostScalar = 1, kWithoutOptional = 2, kDepthwise = 3, kVariants = 4 };

// One call of a class, with sizes that every shape rule can live with.
struct Example {
  int64_t sizes[16][4], strides[4] = {512, 64, 8, 1};
  flhal_tensor_v1 tensors[16] = {};
  flhal_attr_v1 attrs[opset::kMaxAttrs] = {};
  int64_t two[2] = {2, 2};
  uint64_t philox[2] = {0, 0};
  alignas(16) unsigned char scalar[16] = {};
  flhal_op_call_v1 call{};
};

uint16_t rank_of(const opset::OpDef& def, const opset::Operand& o) {
  const std::string_view name = o.name, op = def.name;
  if (def.family == opset::Family::kConv) return name == "bias" ? 1 : 4;
  if (op.starts_with("batch_norm")) return name == "out" || name == "x" || name == "gx" || name == "grad" ? 4 : 1;
  if (op.starts_with("layer_norm") && (name == "weight" || name == "bias" || name == "gw" || name == "gb")) return 1;
  if (op == "index_add" && name == "index") return 1;
  if (op == "index_select" && name == "out") return 3;
  return 2;
}

flhal_dtype dtype_of(const opset::OpDef& def, const opset::Operand& o, uint32_t i, flhal_dtype d) {
  const std::string_view name = o.name;
  if (name == "index") return FLHAL_I64;
  if (name == "cond" || name == "mask") return FLHAL_BOOL;
  if (i > 0) return d;
  switch (def.out_dtype) {
    case opset::OutDtype::kBool: return FLHAL_BOOL;
    case opset::OutDtype::kInt64: return FLHAL_I64;
    case opset::OutDtype::kAccumulate: return FLHAL_DTYPE_CODE(d) == FLHAL_DTYPE_CODE(FLHAL_F32) || d == FLHAL_BF16 ? d : FLHAL_I64;
    default: return d;
  }
}

bool make_example(const opset::OpDef& def, flhal_dtype d, Variant variant, Example& e) {
  const uint32_t n = def.n_outputs + def.n_inputs;
  bool has_optional = false;
  for (uint32_t i = 0; i < n; ++i) {
    const opset::Operand& o = def.operands[i];
    flhal_tensor_v1& t = e.tensors[i];
    if (o.optional) {
      has_optional = true;
      if (variant == kWithoutOptional) { t.flags = FLHAL_TENSOR_ABSENT; continue; }
    }
    t.rank = rank_of(def, o);
    t.dtype = dtype_of(def, o, i, d);
    for (uint32_t k = 0; k < 4; ++k) e.sizes[i][k] = 8;
    if (variant == kDepthwise && std::string_view(o.name) == "w") e.sizes[i][1] = 1;
    t.sizes = e.sizes[i];
    t.strides = e.strides + 4 - t.rank;
    t.address = 1u << 20;
    t.extent = 8 * 512;
  }
  if (variant == kWithoutOptional && !has_optional) return false;
  if (variant == kDepthwise && std::string_view(def.name) != "conv2d") return false;
  if (variant == kHostScalar) {
    if (!def.pointwise || def.n_inputs == 0) return false;
    flhal_tensor_v1& last = e.tensors[n - 1];
    if (def.n_inputs == 1 && def.family != opset::Family::kCopy) return false;
    last.rank = 0;
    last.flags = FLHAL_TENSOR_HOST_SCALAR;
    last.address = reinterpret_cast<uint64_t>(e.scalar);
  }
  if (def.family == opset::Family::kReduce && std::string_view(def.name) != "cumsum") e.sizes[0][1] = 1;
  uint32_t n_attrs = 0;
  for (uint32_t a = 0; a < def.n_attrs; ++a) {
    const opset::Attr& attr = def.attrs[a];
    const bool groups = variant == kDepthwise && std::string_view(attr.name) == "groups";
    if (!attr.required && !groups) continue;
    flhal_attr_v1& v = e.attrs[n_attrs++];
    v.key = opset::attr_key(def.number, attr.number);
    v.kind = attr.kind;
    if (groups) v.v.i = 8;
    else if (attr.kind == FLHAL_ATTR_INTS) { v.v.p = e.two; v.count = 2; }
    else if (attr.kind == FLHAL_ATTR_PHILOX) { v.v.p = e.philox; v.count = 1; }
  }
  e.call.struct_size = sizeof e.call;
  e.call.op = def.number;
  e.call.name = def.name;
  e.call.tensors = e.tensors;
  e.call.attrs = e.attrs;
  e.call.tensor_stride = sizeof(flhal_tensor_v1);
  e.call.attr_stride = sizeof(flhal_attr_v1);
  e.call.n_outputs = def.n_outputs;
  e.call.n_inputs = def.n_inputs;
  e.call.n_attrs = n_attrs;
  e.call.compute_dtype = d;
  return true;
}

int usage(const std::string& what) {
  fmt::print(stderr, "flhal-kernels: {}\nusage: flhal-kernels export --dialect opencl-c [--schedule fat|thin] [--vector-bytes N] "
                     "[--no-fp64] [--out FOLDER]\n", what);
  return 2;
}

int run(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "export") return usage("the first word must be export");
  kernels::Target target;
  target.dialect = kernels::Dialect::kOpenClC;
  std::string out, dialect;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--no-fp64") { target.fp64 = false; continue; }
    if (i + 1 == argc) return usage(fmt::format("{} wants a value, or is unknown", word));
    const std::string value = argv[++i];
    if (word == "--dialect") dialect = value;
    else if (word == "--out") out = value;
    else if (word == "--schedule" && (value == "fat" || value == "thin")) target.schedule = value == "fat" ? kernels::Schedule::kFat : kernels::Schedule::kThin;
    else if (word == "--vector-bytes" && std::atoi(value.c_str()) > 0) target.vector_bytes = static_cast<uint32_t>(std::atoi(value.c_str()));
    else return usage(fmt::format("{} {} is unknown", word, value));
  }
  if (dialect != "opencl-c" && dialect != "opencl-c-1.2") return usage("the dialect must be opencl-c");
  if (!out.empty() && mkdir(out.c_str(), 0777) != 0 && errno != EEXIST) {
    fmt::print(stderr, "flhal-kernels: {} cannot be made: {}\n", out, std::strerror(errno));
    return 1;
  }
  std::map<std::string, const kernels::TextKernel*> texts;
  for (uint32_t f = 0; f < opset::kFamilies; ++f)
    for (const opset::OpDef& def : opset::family_rows(f))
      for (flhal_dtype d : kDtypes)
        for (uint32_t v = 0; v < kVariants; ++v) {
          Example e;
          if (def.variadic() || !make_example(def, d, static_cast<Variant>(v), e)) continue;
          const char* reason = "";
          auto plan = kernels::make_kernel_plan(e.call, target, &reason);
          if (plan && plan->text) texts[fmt::format("{}-{:016x}", plan->text->name, plan->text->hash)] = plan->text;
        }
  for (const auto& [name, text] : texts) {
    fmt::print("{} {} bytes, options \"{}\"\n", name, text->source.size(), text->options);
    if (out.empty()) continue;
    const std::string path = out + "/" + name + ".cl";
    FILE* file = std::fopen(path.c_str(), "w");
    bool well = file && std::fwrite(text->source.data(), 1, text->source.size(), file) == text->source.size();
    if (file && std::fclose(file) != 0) well = false;
    if (!well) {
      fmt::print(stderr, "flhal-kernels: {} cannot be written: {}\n", path, std::strerror(errno));
      return 1;
    }
  }
  fmt::print("{} kernels\n", texts.size());
  return 0;
}

}  // namespace
}  // namespace flhal

int main(int argc, char** argv) { return flhal::run(argc, argv); }
