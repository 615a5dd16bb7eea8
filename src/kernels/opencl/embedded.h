// src/kernels/opencl/embedded.h: the texts that embed_texts.cmake put into the library; ends with a null name.
#pragma once

namespace flhal::kernels {
struct EmbeddedText { const char* file; const char* text; };
extern const EmbeddedText kEmbeddedTexts[];
}  // namespace flhal::kernels
