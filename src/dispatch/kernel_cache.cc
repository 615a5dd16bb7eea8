// src/dispatch/kernel_cache.cc: see kernel_cache.h. A file: a line of format, the length of the key, the key, a hash, code.
#include "dispatch/kernel_cache.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "core/private_file.h"

namespace flhal {
namespace {

constexpr char kFormat[] = "flhal kernel 1\n";
constexpr uint64_t kBytesMax = 64ull << 20;
constexpr size_t kFilesMax = 4096;          // the oldest go when there are more

uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : bytes) hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

std::string key_of(const Device& device, const kernels::TextKernel& text) {
  const Plugin& plugin = *device.plugin;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", plugin.id, plugin.version, plugin.build_id, device.info.fingerprint ? device.info.fingerprint : "",
                     plugin.module_binary->dialect, text.options, text.source);
}

std::string folder() {
  const std::string caches = config_text("kernel_cache") == "off" ? "" : cache_folder();
  return caches.empty() ? "" : caches + "/kernels";
}

std::string path_of(const std::string& folder, const std::string& key, const kernels::TextKernel& text) {
  return fmt::format("{}/{}-{:016x}.bin", folder, text.name, hash_of(key));
}

void remove_oldest(const std::string& folder) {
  struct File { std::string path; timespec time; };
  std::vector<File> files;
  DIR* dir = opendir(folder.c_str());
  if (!dir) return;
  while (dirent* entry = readdir(dir)) {
    std::string path = folder + "/" + entry->d_name;
    struct stat info{};
    if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) files.push_back({path, info.st_mtim});
  }
  closedir(dir);
  if (files.size() <= kFilesMax) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.time.tv_sec != b.time.tv_sec ? a.time.tv_sec < b.time.tv_sec : a.time.tv_nsec < b.time.tv_nsec;
  });
  for (size_t i = 0; i + kFilesMax * 3 / 4 < files.size(); ++i) unlink(files[i].path.c_str());
}

// Once per process: a model compiles hundreds of kernels, and all of them meet the same folder.
void say(const std::string& reason) {
  static std::atomic<bool> said{false};
  if (!log_enabled(kLogInfo) || said.exchange(true)) return;
  log(kLogInfo, "kernel cache: {}; kernels are compiled again in each process: set XDG_CACHE_HOME to a folder of your own with free space, "
      "or FLHAL_KERNEL_CACHE=off", reason);
}

}  // namespace

bool kept_code(const Device& device, const kernels::TextKernel& text, std::string* out) {
  const std::string in = folder();
  if (in.empty()) return false;
  const std::string key = key_of(device, text), path = path_of(in, key, text);
  std::string bytes, reason;
  if (!read_private_file(in, path, kBytesMax, &bytes, &reason)) {
    if (!reason.empty()) say(reason);
    return false;
  }
  std::string_view rest = bytes;
  auto take = [&](size_t n) {
    std::string_view part = rest.substr(0, n);
    rest.remove_prefix(part.size());
    return part;
  };
  if (take(sizeof kFormat - 1) != std::string_view(kFormat)) return false;
  uint64_t key_bytes = 0, code_hash = 0;
  std::string_view number = take(8);
  if (number.size() != 8) return false;
  std::memcpy(&key_bytes, number.data(), 8);
  if (key_bytes != key.size() || take(key.size()) != key) return false;
  number = take(8);
  if (number.size() != 8) return false;
  std::memcpy(&code_hash, number.data(), 8);
  if (rest.empty() || hash_of(rest) != code_hash) return false;       // torn, or changed
  out->assign(rest);
  return true;
}

void keep_code(const Device& device, const kernels::TextKernel& text, const std::string& code) {
  const std::string in = folder();
  if (in.empty() || code.empty() || code.size() > kBytesMax / 2) return;
  std::string reason = make_private_folder(in);
  struct stat info{};
  if (reason.empty() && lstat(in.c_str(), &info) == 0) reason = S_ISDIR(info.st_mode) ? distrust(info, in) : fmt::format("{} is not a folder", in);
  if (reason.empty()) {
    const std::string key = key_of(device, text);
    const uint64_t key_bytes = key.size(), code_hash = hash_of(code);
    std::string bytes = kFormat;
    bytes.append(reinterpret_cast<const char*>(&key_bytes), 8).append(key).append(reinterpret_cast<const char*>(&code_hash), 8).append(code);
    reason = write_private_file(path_of(in, key, text), bytes);
    if (reason.empty()) remove_oldest(in);
  }
  if (!reason.empty()) say(reason);
}

}  // namespace flhal
