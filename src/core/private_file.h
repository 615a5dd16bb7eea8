// src/core/private_file.h: files of this user's own in a cache folder: read only what nobody else could have written, write
// so that readers see the old bytes or the new ones.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace flhal {

// The folder of all caches: $XDG_CACHE_HOME/flhal, else ~/.cache/flhal. "" when there is none, or when privileges were
// raised.
std::string cache_folder();

// "" when it may be trusted: it belongs to this process's user and nobody else may write it.
std::string distrust(const struct stat& info, const std::string& path);

// Makes `folder` (0700) and its parent. "" or the reason.
std::string make_private_folder(const std::string& folder);

// Temporary file, then rename. "" or the reason.
std::string write_private_file(const std::string& path, std::string_view bytes);

// The bytes of a regular file that may be trusted, in a folder that may be. False when it is absent; *reason is then "", or
// why it may not be used.
bool read_private_file(const std::string& folder, const std::string& path, uint64_t bytes_max, std::string* out, std::string* reason);

}  // namespace flhal
