// reference_plugins/opencl/chips.h: every device of every platform that the ICD loader shows, as core wants to know it.
#pragma once

#include <flhal/plugin.h>

#include <deque>
#include <string>

#include "cl.h"

namespace flhal::opencl {

// How slabs are made, best first.
enum class Memory { kFine, kCoarse, kBuffer };   // SVM that the host sees as it is; SVM to be mapped; cl_mem

struct Chip {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  Memory memory = Memory::kBuffer;
  bool unified = false;            // its memory is the host's
  uint64_t base_alignment = 1;     // of sub-buffers, in bytes
  std::string product, vendor, driver, capability, pci, fingerprint, dialects;
  flhal_p_device_info_v1 info{};   // strings point into this object, which never moves
};

// The chips, in the loader's order. Devices older than OpenCL 1.2, not available ones and platforms that fail are left out
// with a line in the log. `memory`: auto, fine, coarse or buffer; a chip without it takes the next it has.
// Returns "" or why there is nothing to ask: cause and remedy.
std::string find_chips(const char* memory, std::deque<Chip>* out);

}  // namespace flhal::opencl
