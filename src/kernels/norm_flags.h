// src/kernels/norm_flags.h: RowsParams::flags of the normalisations.
#pragma once

#include <stdint.h>

namespace flhal::kernels {
inline constexpr uint32_t kHasMean = 1, kHasRstd = 2, kHasWeight = 4, kHasBias = 8, kHasGradWeight = 16, kHasGradBias = 32,
                          kHasGradInput = 64, kTraining = 128, kHasRunningMean = 256, kHasRunningVar = 512;
}  // namespace flhal::kernels
