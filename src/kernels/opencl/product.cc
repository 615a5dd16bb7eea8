// src/kernels/opencl/product.cc: matmul and convolutions as text/matmul.clk and text/conv.clk: register tiles and scratch.
#include "kernels/opencl/compose.h"

namespace flhal::kernels {
namespace {

// The register tile by the size of a vector register: sums, one line of B and a broadcast must fit. Wider vectors than 32
// bytes spill in the compilers of today (2.5 times slower on PoCL), so 64-byte machines take the tile of 32.
void register_tile(TextShape& shape, const Target& target) {
  const bool wide = target.vector_bytes >= 32;
  const uint32_t vl = (wide ? 32 : 16) / kKindBytes[kComputeKind[shape.compute]];
  const char* type = shape.compute == kCF32 ? "float" : shape.compute == kCF64 ? "double" : "long";
  const uint32_t mr = shape.compute == kCI64 || !wide ? 4 : 6;
  shape.after += std::string("#define VECTOR ") + type + std::to_string(vl) + "\n#define VL " + std::to_string(vl) +
                 "\n#define NV 2\n#define MR " + std::to_string(mr) + "\n";
  if (target.schedule == Schedule::kThin) return;
  const uint32_t bytes = kKindBytes[kComputeKind[shape.compute]], kc = 1024 / bytes;
  shape.local_bytes = (192 * kc + 2 * vl * kc + 96 * 128) * bytes;
}

void schedule_matmul(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<MatmulParams*>(params);
  uint64_t units = out.groups[0];
  if (schedule == Schedule::kThin) {
    p->tile_m = p->tile_n = 4;
    p->tiles_m = (p->m + 3) / 4;
    p->tiles_n = (p->n + 3) / 4;
    units = static_cast<uint64_t>(p->batches * p->tiles_m * p->tiles_n);
  }
  set_units(out, units, schedule);
}

uint64_t conv_elements(const ConvParams& p, int which) {   // of the result
  const int64_t n = which == 3 ? p.groups * p.out_channels * p.in_channels * p.kernel[0] * p.kernel[1]
                    : which == 2 ? p.images * p.groups * p.in_channels * p.in[0] * p.in[1]
                                 : p.images * p.groups * p.out_channels * p.out[0] * p.out[1];
  return n > 0 ? static_cast<uint64_t>(n) : 1;
}
template <int kWhich> void schedule_conv(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<ConvParams*>(params);
  set_units(out, schedule == Schedule::kThin ? conv_elements(*p, kWhich) : out.groups[0], schedule);
}

}  // namespace

bool shape_matmul(const TextRequest& request, TextShape& shape, const char**) {
  auto* p = reinterpret_cast<const MatmulParams*>(request.params);
  shape.text = "text/matmul.clk";
  shape.params_bytes = sizeof(MatmulParams);
  shape.doubles_at = __builtin_offsetof(MatmulParams, alpha);
  shape.doubles = 2;
  shape.n_operands = 4;
  for (uint32_t k = 0; k < 4; ++k) shape.kind[k] = p->kind[k];
  shape.schedule = schedule_matmul;
  shape.stand_in = 3;                    // c
  shape.after = std::string("#define NATIVE ") + (p->kind[0] == kComputeKind[shape.compute] ? "1\n" : "0\n");
  register_tile(shape, request.target);
  return true;
}

bool shape_conv(const TextRequest& request, TextShape& shape, const char**) {
  auto* p = reinterpret_cast<const ConvParams*>(request.params);
  const std::string& base = request.base;
  shape.text = "text/conv.clk";
  shape.params_bytes = sizeof(ConvParams);
  Kind native = kComputeKind[shape.compute];
  const char* which;
  if (base == "conv2d" || base == "conv2d_depthwise") {
    which = base == "conv2d" ? "FORWARD" : "DEPTHWISE";
    shape.n_operands = 4;
    shape.kind[0] = p->y_kind; shape.kind[1] = p->x_kind; shape.kind[2] = p->w_kind; shape.kind[3] = p->bias_kind;
    shape.schedule = schedule_conv<0>;
  } else if (base == "conv2d_backward_input") {
    which = "INPUT";
    shape.n_operands = 3;
    shape.kind[0] = p->x_kind; shape.kind[1] = p->y_kind; shape.kind[2] = p->w_kind;
    shape.schedule = schedule_conv<2>;
  } else {
    which = "WEIGHT";
    shape.n_operands = 3;
    shape.kind[0] = p->w_kind; shape.kind[1] = p->y_kind; shape.kind[2] = p->x_kind;
    shape.schedule = schedule_conv<3>;
  }
  shape.after = std::string("#define ") + which + " 1\n#define NATIVE " + (shape.kind[0] == native ? "1\n" : "0\n");
  if (base != "conv2d_depthwise") register_tile(shape, request.target);
  return true;
}

}  // namespace flhal::kernels
