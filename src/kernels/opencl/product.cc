// src/kernels/opencl/product.cc: matmul and convolutions as text/matmul.clk and text/conv.clk: register tiles and scratch.
#include <algorithm>

#include "kernels/opencl/compose.h"
#include "kernels/opencl/plane_tiles.h"

namespace flhal::kernels {
namespace {

// The register tile by the size of a vector register: sums, one line of B and a broadcast must fit into the 16 registers that
// machines of 16 and 32 bytes have, and the 32 of machines of 64.
struct RegisterTile { uint32_t bytes, rows, rows_in_place; };
constexpr RegisterTile kRegisterTiles[] = {{64, 12, 8}, {32, 6, 6}, {16, 4, 4}};
const RegisterTile& register_tile(const Target& target) {
  for (const RegisterTile& t : kRegisterTiles)
    if (target.vector_bytes >= t.bytes) return t;
  return kRegisterTiles[2];
}
uint32_t lanes(const Target& target, Compute compute) { return register_tile(target).bytes / kKindBytes[kComputeKind[compute]]; }

void define_tile(TextShape& shape, const Target& target, uint32_t rows) {
  const uint32_t vl = lanes(target, shape.compute);
  const char* type = shape.compute == kCF32 ? "float" : shape.compute == kCF64 ? "double" : "long";
  shape.after += std::string("#define VECTOR ") + type + std::to_string(vl) + "\n#define VL " + std::to_string(vl) +
                 "\n#define NV 2\n#define MR " + std::to_string(rows) + "\n";
}

// Packed: rows of A for a tile, a sliver of B, and sums where the output is not of the compute type.
void packed_tile(TextShape& shape, const Target& target, bool native) {
  const uint32_t rows = shape.compute == kCI64 ? 4 : register_tile(target).rows;
  define_tile(shape, target, rows);
  const uint32_t bytes = kKindBytes[kComputeKind[shape.compute]], kc = 1024 / bytes, mb = native ? 192 : 96;
  shape.after += "#define MB " + std::to_string(mb) + "\n#define NATIVE " + (native ? "1\n" : "0\n");
  if (target.schedule == Schedule::kThin) return;
  shape.local_bytes = (mb * (kc + 16) + 2 * lanes(target, shape.compute) * kc + (native ? 0 : 96 * 128)) * bytes;
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cuts the host's tiles until several cores have work, narrower first: a tile packs all of its depth of B, a row of A is copied as it is.
void cut_tiles(MatmulParams& p, int64_t mr, int64_t nr) {
  constexpr int64_t kNarrow = 12, kShort = 6, kWork = 65536;   // tiles wanted; multiply-adds that are worth a tile
  const int64_t most = std::max<int64_t>(1, p.batches * p.m * p.n * std::max<int64_t>(p.k, 1) / kWork);
  const int64_t narrow = divide_up(std::min(kNarrow, most), std::max<int64_t>(p.batches * p.tiles_m, 1));
  if (narrow > p.tiles_n) {
    p.tile_n = std::min(p.n, std::max(2 * nr, divide_up(divide_up(p.n, narrow), nr) * nr));
    p.tiles_n = divide_up(p.n, p.tile_n);
  }
  const int64_t low = divide_up(std::min(kShort, most), std::max<int64_t>(p.batches * p.tiles_n, 1));
  if (low > p.tiles_m) {
    p.tile_m = std::min(p.m, std::max(4 * mr, divide_up(divide_up(p.m, low), mr) * mr));
    p.tiles_m = divide_up(p.m, p.tile_m);
  }
}

void schedule_matmul(unsigned char* params, LaunchArgs& out, Schedule schedule, int64_t mr, int64_t nr) {
  auto* p = reinterpret_cast<MatmulParams*>(params);
  if (p->m < 1 || p->n < 1 || p->batches < 1) return set_units(out, 1, schedule);
  if (schedule == Schedule::kThin) {
    p->tile_m = p->tile_n = 4;
    p->tiles_m = divide_up(p->m, 4);
    p->tiles_n = divide_up(p->n, 4);
  } else {
    cut_tiles(*p, mr, nr);
  }
  set_units(out, static_cast<uint64_t>(p->batches * p->tiles_m * p->tiles_n), schedule);
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
  const int64_t mr = shape.compute == kCI64 ? 4 : register_tile(request.target).rows, nr = 2 * lanes(request.target, shape.compute);
  shape.schedule = [mr, nr](unsigned char* params, LaunchArgs& out, Schedule schedule) { schedule_matmul(params, out, schedule, mr, nr); };
  shape.stand_in = 3;                    // c
  shape.after = std::string("#define B_FLOAT ") + (shape.compute == kCF32 && shape.kind[2] == kF32 ? "1\n" : "0\n");
  packed_tile(shape, request.target, p->kind[0] == kComputeKind[shape.compute]);
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
  shape.after = std::string("#define ") + which + " 1\n";
  if (base == "conv2d_depthwise") return true;
  const RegisterTile& tile = register_tile(request.target);
  const uint32_t bytes = kKindBytes[native];
  const PlaneTiles planes = base == "conv2d" && request.target.schedule == Schedule::kFat
                                ? plane_tiles(*p, tile.rows_in_place, 2 * lanes(request.target, shape.compute), request.target.local_bytes / bytes)
                                : PlaneTiles{};
  if (planes.rows > 0) {
    shape.text = "text/conv_planes.clk";
    define_tile(shape, request.target, tile.rows_in_place);
    shape.local_bytes = static_cast<uint32_t>(planes.scratch) * bytes;
    shape.schedule = [planes](unsigned char* params, LaunchArgs& out, Schedule schedule) {
      auto* conv = reinterpret_cast<ConvParams*>(params);
      conv->tile_m = planes.channels;
      conv->tiles_m = (conv->out_channels + planes.channels - 1) / planes.channels;
      conv->tile_n = planes.rows * conv->out[1];
      conv->tiles_n = (conv->out[0] + planes.rows - 1) / planes.rows;
      set_units(out, static_cast<uint64_t>(conv->images * conv->groups * conv->tiles_m * conv->tiles_n), schedule);
    };
    return true;
  }
  packed_tile(shape, request.target, shape.kind[0] == native && which[0] != 'W');
  return true;
}

}  // namespace flhal::kernels
