// src/kernels/text_kernel.h: a kernel as source text for a compiler on the chip's side. One module, one function.
#pragma once

#include <cstdint>
#include <string>

namespace flhal::kernels {

struct TextKernel {
  std::string name;                // for logs and error texts: "add_f32.fat"
  std::string source, options;
  const char* function = "run";
  uint64_t hash = 0;               // of source and options
};

// The one kernel of this source and options; lives as long as the process. Any thread.
const TextKernel* interned_text(std::string name, std::string source, std::string options);

// A file of text/ or prelude/ as the library carries it ("text/reduce.clk"); lines "@include file" are replaced.
std::string kernel_text(const char* file);

}  // namespace flhal::kernels
