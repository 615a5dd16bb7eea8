// src/kernels/opencl/plane_tiles.h: how text/conv_planes.clk cuts a convolution into work-items.
#pragma once

#include "kernels/params.h"

namespace flhal::kernels {

struct PlaneTiles {
  int64_t rows = 0;        // of the output, in a work-item; 0: this convolution is better packed, or does not fit
  int64_t channels = 0;    // output channels in a work-item, a multiple of the register tile's
  int64_t scratch = 0;     // elements of the planes
};

// `mr` channels times `nr` places are one register tile; `capacity` elements fit into the scratch.
PlaneTiles plane_tiles(const ConvParams& p, int64_t mr, int64_t nr, int64_t capacity);

}  // namespace flhal::kernels
