// src/core/file_text.h: reads a small regular file whole. Never blocks on a pipe or device that has a file's name.
#pragma once

#include <string>

#include "core/refusal.h"

namespace flhal {

// `what` names the file's role in the sentence: "manifest". A file above `bytes_max` is refused.
Refusal read_file_text(const std::string& path, const char* what, size_t bytes_max, std::string* out);

// Why open(2) of `path` failed, as a sentence with remedy.
Refusal open_failure(const std::string& path, const char* what, int error);

}  // namespace flhal
