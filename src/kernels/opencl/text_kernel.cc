// src/kernels/opencl/text_kernel.cc: every source composed so far, once.
#include "kernels/text_kernel.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/opencl/embedded.h"

namespace flhal::kernels {
namespace {

uint64_t fnv(uint64_t hash, const std::string& bytes) {
  for (unsigned char c : bytes) hash = (hash ^ c) * 0x100000001b3ull;
  return (hash ^ 0xff) * 0x100000001b3ull;
}

// Whole-line comments are for readers here, not for the compiler on the chip.
void append_lines(std::string& to, const char* text) {
  for (const char* line = text; *line;) {
    const char* end = std::strchr(line, '\n');
    std::string one(line, end ? static_cast<size_t>(end - line) : std::strlen(line));
    if (one.rfind("@include ", 0) == 0) to += kernel_text(one.c_str() + 9);
    else if (one.rfind("//", 0) != 0 && !one.empty()) to += one + "\n";
    if (!end) break;
    line = end + 1;
  }
}

}  // namespace

std::string kernel_text(const char* file) {
  std::string text;
  for (const EmbeddedText* t = kEmbeddedTexts; t->file; ++t)
    if (std::strcmp(t->file, file) == 0) append_lines(text, t->text);
  return text;
}

const TextKernel* interned_text(std::string name, std::string source, std::string options) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<std::string, std::unique_ptr<TextKernel>>;
  std::lock_guard lock(mutex);
  auto& slot = all[options + "\n" + source];
  if (!slot) {
    slot = std::make_unique<TextKernel>();
    slot->hash = fnv(fnv(0xcbf29ce484222325ull, options), source);
    slot->name = std::move(name);
    slot->source = std::move(source);
    slot->options = std::move(options);
  }
  return slot.get();
}

}  // namespace flhal::kernels
