// src/core/file_text.cc: reads a small regular file whole.
#include "core/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flhal {

Refusal open_failure(const std::string& path, const char* what, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return refuse(FLHAL_E_NOT_FOUND, fmt::format("the {} {} does not exist", what, path),
                    "correct the path, or install the package it belongs to");
    case EACCES:
    case EPERM:
      return refuse(FLHAL_E_INVALID, fmt::format("the {} {} may not be read by user {}", what, path, static_cast<unsigned>(geteuid())),
                    fmt::format("run: chmod a+r {}", path));
    case ELOOP:
      return refuse(FLHAL_E_INVALID, fmt::format("the {} {} is a loop of symbolic links", what, path), "remove the links and install again");
    default:
      return refuse(FLHAL_E_INVALID, fmt::format("the {} {} cannot be opened: {}", what, path, strerrordesc_np(error)),
                    "make it readable, or take it out of the search");
  }
}

Refusal read_file_text(const std::string& path, const char* what, size_t bytes_max, std::string* out) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return open_failure(path, what, errno);
  struct stat info{};
  Refusal refusal;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    refusal = refuse(FLHAL_E_INVALID, fmt::format("the {} {} is not a regular file", what, path), "take it out of the search");
  } else if (static_cast<uint64_t>(info.st_size) > bytes_max) {
    refusal = refuse(FLHAL_E_INVALID, fmt::format("the {} {} has {} bytes; at most {} are read", what, path, info.st_size, bytes_max),
                     "make it smaller");
  } else {
    out->clear();
    char chunk[16384];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && out->size() <= bytes_max) out->append(chunk, static_cast<size_t>(n));
    if (n < 0) refusal = open_failure(path, what, errno);
  }
  close(fd);
  return refusal;
}

}  // namespace flhal
