// src/core/plugin_file.h: what a library file says about itself before anything of it runs.
//
// Idea: dlopen runs constructors, and its texts are about symbols, not about causes. So the header, the dynamic section
// and the symbol table are read first, and each way to be wrong has its own sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/refusal.h"

namespace flhal {

struct PluginFile {
  std::string path;              // absolute, symbolic links resolved
  uint64_t bytes = 0, device = 0, inode = 0;
  int64_t modified_ns = 0;
  std::string build_id;          // hex of the note .note.gnu.build-id; "" when there is none
  std::vector<std::string> needed;
  std::string run_path;
};

Refusal inspect_plugin_file(const std::string& path, PluginFile* out);

}  // namespace flhal
