// src/kernels/opencl/plane_tiles.cc: see plane_tiles.h.
//
// Few tall work-items copy least, for neighbours copy the rows between them twice, and each one copies all input channels anew for its
// output channels. Against that: planes must fit into the scratch, places come in whole register tiles, and there must be work for
// several cores, with some to spare where a driver deals it out unevenly.
#include "kernels/opencl/plane_tiles.h"

#include <algorithm>

namespace flhal::kernels {
namespace {

constexpr int64_t kTaps = 64;          // TAPS of the text
constexpr int64_t kUnits = 16;         // wanted
constexpr int64_t kWork = 256;         // multiply-adds that an element of a plane is worth copying for

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

PlaneTiles plane_tiles(const ConvParams& p, int64_t mr, int64_t nr, int64_t capacity) {
  const int64_t taps = p.kernel[0] * p.kernel[1];
  if (taps > kTaps || p.images < 1 || p.in_channels < 1 || p.out_channels < 1 || p.out[0] < 1 || p.out[1] < 1 || taps < 1) return {};
  if (taps == 1 && p.stride[0] == 1 && p.stride[1] == 1) return {};   // its patches are rows of the image
  int64_t reach[2], phases[2];
  for (int i = 0; i < 2; ++i) {
    reach[i] = (p.kernel[i] - 1) * p.dilation[i];
    phases[i] = std::min(p.stride[i], reach[i] + 1);
  }
  const int64_t wide = p.out[1] + reach[1] / p.stride[1];
  auto elements = [&](int64_t rows) { return p.in_channels * phases[0] * phases[1] * (rows + reach[0] / p.stride[0]) * wide + nr; };
  auto panels = [&](int64_t rows) { return rows > 0 ? divide_up((rows - 1) * wide + p.out[1], nr) : 0; };

  PlaneTiles best;
  double least = 0;
  for (int64_t tiles = 1, before = 0; tiles <= p.out[0]; ++tiles) {
    const int64_t rows = divide_up(p.out[0], tiles);
    if (rows == before || elements(rows) > capacity) continue;
    before = rows;
    const int64_t full = p.out[0] / rows, work_items = divide_up(p.out[0], rows);
    const int64_t wanted = divide_up(kUnits, p.images * p.groups * work_items);
    const int64_t channels = std::max(divide_up(divide_up(p.out_channels, wanted), mr), divide_up(kWork, taps * mr)) * mr;
    const int64_t all_panels = full * panels(rows) + panels(p.out[0] - full * rows);
    const double sums = static_cast<double>(all_panels * nr * taps * p.in_channels) * static_cast<double>(divide_up(p.out_channels, mr) * mr);
    const double copies = static_cast<double>(work_items * elements(rows) * divide_up(p.out_channels, channels));
    const double cost = sums / static_cast<double>(nr) + copies;   // a copied element costs about as much as `nr` multiply-adds
    if (best.rows != 0 && cost >= least) continue;
    least = cost;
    best = {rows, channels, elements(rows)};
  }
  if (best.rows == 0) return {};
  const int64_t places = p.out[0] * p.out[1], computed = divide_up(p.out[0], best.rows) * panels(best.rows) * nr;
  return computed > 3 * places && computed > places + nr ? PlaneTiles{} : best;   // a narrow image whose reach is most of it
}

}  // namespace flhal::kernels
