// src/core/private_file.cc: see private_file.h.
#include "core/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace flhal {

std::string cache_folder() {
  if (getauxval(AT_SECURE) != 0) return "";
  if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache && cache[0] == '/') return std::string(cache) + "/flhal";
  if (const char* home = secure_getenv("HOME"); home && home[0] == '/') return std::string(home) + "/.cache/flhal";
  return "";
}

std::string distrust(const struct stat& info, const std::string& path) {
  if (info.st_uid != geteuid())
    return fmt::format("{} belongs to user {} and this process runs as user {}", path, info.st_uid, static_cast<unsigned>(geteuid()));
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return fmt::format("{} may be written by others (mode {:o})", path, info.st_mode & 07777u);
  return "";
}

std::string make_private_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return "";
  return fmt::format("the folder {} cannot be made: {}", folder, strerrordesc_np(errno));
}

std::string write_private_file(const std::string& path, std::string_view bytes) {
  std::string fresh = path + ".XXXXXX";
  const int fd = mkostemp(fresh.data(), O_CLOEXEC);
  bool well = fd >= 0;
  for (size_t done = 0; well && done < bytes.size();) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    well = n > 0;
    if (well) done += static_cast<size_t>(n);
  }
  int reason = errno;
  if (fd >= 0 && close(fd) != 0 && well) {
    well = false;
    reason = errno;
  }
  if (well && rename(fresh.c_str(), path.c_str()) != 0) {
    well = false;
    reason = errno;
  }
  if (well) return "";
  if (fd >= 0) unlink(fresh.c_str());
  return fmt::format("{} cannot be written: {}", path, strerrordesc_np(reason));
}

bool read_private_file(const std::string& folder, const std::string& path, uint64_t bytes_max, std::string* out, std::string* reason) {
  reason->clear();
  struct stat info{};
  if (lstat(folder.c_str(), &info) != 0) return false;
  *reason = S_ISDIR(info.st_mode) ? distrust(info, folder) : fmt::format("{} is not a folder", folder);
  if (!reason->empty()) return false;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    if (errno != ENOENT) *reason = fmt::format("{} cannot be read: {}", path, strerrordesc_np(errno));
    return false;
  }
  bool well = fstat(fd, &info) == 0;
  if (!well) *reason = fmt::format("{} cannot be read: {}", path, strerrordesc_np(errno));
  else *reason = S_ISREG(info.st_mode) ? distrust(info, path) : fmt::format("{} is not a regular file", path);
  if (reason->empty() && static_cast<uint64_t>(info.st_size) > bytes_max) *reason = fmt::format("{} has {} bytes, more than {}", path, info.st_size, bytes_max);
  well = reason->empty();
  if (well) out->resize(static_cast<size_t>(info.st_size));
  for (size_t done = 0; well && done < out->size();) {
    ssize_t n = read(fd, out->data() + done, out->size() - done);
    well = n > 0;
    if (well) done += static_cast<size_t>(n);
  }
  close(fd);
  return well;
}

}  // namespace flhal
