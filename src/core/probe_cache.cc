// src/core/probe_cache.cc: reading, checking and atomically replacing the file of probe answers.
#include "core/probe_cache.h"

#include <fcntl.h>
#include <flhal/base.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/file_text.h"
#include "core/private_file.h"

extern char** environ;

namespace flhal {
namespace {

constexpr int kFormat = 1;
constexpr size_t kBytesMax = 16u << 20;
constexpr int kEntriesMax = 256;
// A machine may have been busy for a moment, a driver may hang for ever: the first time-out is remembered briefly, each
// further one in a row twice as long.
constexpr uint64_t kTimeoutKeptS = 10, kTimeoutKeptMaxS = 160;

uint64_t timeout_kept_s(uint64_t in_a_row) {
  return in_a_row < 5 ? kTimeoutKeptS << (in_a_row - 1) : kTimeoutKeptMaxS;
}

uint64_t boot_seconds() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<uint64_t>(t.tv_sec);
}

std::string boot_id() {
  std::string text;
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "unknown";
  char buffer[64];
  ssize_t n = read(fd, buffer, sizeof buffer);
  close(fd);
  while (n > 0 && buffer[n - 1] == '\n') --n;
  return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
}

// FNV-1a: tells changes apart, keeps no secrets out of anywhere; only the hash of the environment is written down.
uint64_t hash_text(std::string_view text, uint64_t hash = 1469598103934665603ull) {
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

bool matches(std::string_view name, std::string_view pattern) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

// Variables that can change what a plugin answers: what the dynamic loader reads, every *_VISIBLE_DEVICES of a driver,
// and what the manifest names.
uint64_t environment_hash(const Manifest& manifest) {
  std::set<std::string> relevant;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    std::string_view name = text.substr(0, text.find('='));
    bool counts = name == "LD_LIBRARY_PATH" || name == "LD_PRELOAD" || name == "GLIBC_TUNABLES";
    counts = counts || (name.ends_with("_VISIBLE_DEVICES") && name != "FLHAL_VISIBLE_DEVICES" && name != "TORCH_FL_VISIBLE_DEVICES");
    for (const std::string& pattern : manifest.probe_environment) counts = counts || matches(name, pattern);
    if (counts) relevant.insert(std::string(text));
  }
  uint64_t hash = hash_text("");
  for (const std::string& text : relevant) hash = hash_text(text + '\n', hash);
  return hash;
}

// The driver's fingerprint, as far as files tell it: small ones by content (those of /proc have no size or time of use).
uint64_t files_hash(const Manifest& manifest) {
  uint64_t hash = hash_text("");
  for (const std::string& path : manifest.probe_files) {
    std::string text;
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) {
      text = "absent";
    } else if (S_ISDIR(info.st_mode)) {            // what came and went in it; not what changed in its files
      text = fmt::format("folder {} {}.{}", info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    } else if (!S_ISREG(info.st_mode)) {
      text = fmt::format("node {} {}", info.st_rdev, info.st_ino);
    } else if (info.st_size > 65536 || read_file_text(path, "file", 65536, &text)) {
      text = fmt::format("{} {}.{}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    }
    hash = hash_text(path + '\n' + text + '\n', hash);
  }
  return hash;
}

void note(LoadReport& report, std::string reason, std::string remedy) {
  report.notes.push_back({"note", "probe cache", "answers of plugin probes are not kept, so each process asks again: " + std::move(reason), std::move(remedy)});
}

}  // namespace

std::string probe_key(const PluginFile& file, const Manifest& manifest) {
  return fmt::format("core {}.{} time {} size {} build {} boot {} environment {:016x} files {:016x}", FLHAL_VERSION_MAJOR, FLHAL_VERSION_MINOR, file.modified_ns,
                     file.bytes, file.build_id.empty() ? "none" : file.build_id, boot_id(), environment_hash(manifest), files_hash(manifest));
}

std::string ProbeCache::default_folder() { return cache_folder(); }

ProbeCache::ProbeCache(std::string folder) : folder_(std::move(folder)) {}

void ProbeCache::load(LoadReport& report) {
  if (folder_.empty()) return;
  usable_ = true;
  const std::string path = file_path();
  struct stat info{};
  std::string doubt;
  if (lstat(folder_.c_str(), &info) == 0) {
    doubt = S_ISDIR(info.st_mode) ? distrust(info, folder_) : fmt::format("{} is not a folder", folder_);
    if (doubt.empty() && lstat(path.c_str(), &info) == 0) doubt = S_ISREG(info.st_mode) ? distrust(info, path) : fmt::format("{} is not a regular file", path);
  }
  if (!doubt.empty()) {
    usable_ = false;
    note(report, doubt, fmt::format("remove {}, or set XDG_CACHE_HOME to a folder of your own", folder_));
    return;
  }
  std::string text;
  Refusal refusal = read_file_text(path, "probe cache", kBytesMax, &text);
  if (!refusal) root_.reset(cJSON_ParseWithLength(text.c_str(), text.size()));
  if (root_ == nullptr || json_number(root_.get(), "format") != kFormat || !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root_.get(), "answers")))
    root_.reset();          // absent, torn or of another version: as if there were none
}

cJSON* ProbeCache::entries() {
  if (root_ == nullptr) {
    root_.reset(cJSON_CreateObject());
    json_add_number(root_.get(), "format", kFormat);
    cJSON_AddObjectToObject(root_.get(), "answers");
  }
  return cJSON_GetObjectItemCaseSensitive(root_.get(), "answers");
}

ProbeCache::Answer ProbeCache::find(const PluginFile& file, const Manifest& manifest, uint64_t limit_ms) {
  Answer answer;
  if (!usable_ || root_ == nullptr) return answer;
  const cJSON* entry = cJSON_GetObjectItemCaseSensitive(entries(), file.path.c_str());
  if (!cJSON_IsObject(entry) || json_string(entry, "key") != probe_key(file, manifest)) return answer;
  if (const cJSON* timeout = cJSON_GetObjectItemCaseSensitive(entry, "timeout"); timeout != nullptr) {
    const uint64_t until = json_number(timeout, "until_boot_s"), now = boot_seconds();
    if (now >= until || until - now > kTimeoutKeptMaxS || limit_ms > json_number(timeout, "limit_ms")) return answer;
    answer.known = true;
    answer.refusal = refuse(FLHAL_E_TIMEOUT, clean_text(json_string(timeout, "reason").c_str()) + fmt::format(" (asked again by whoever starts in {} s or later)", until - now),
                            json_string(timeout, "remedy") + "; FLHAL_PROBE_CACHE=refresh asks at once");
    return answer;
  }
  if (description_from_json(cJSON_GetObjectItemCaseSensitive(entry, "plugin"), &answer.description)) return answer;
  answer.known = true;
  return answer;
}

void ProbeCache::store(const PluginFile& file, const Manifest& manifest, JsonOwner entry) {
  if (!usable_) return;
  json_add(entry.get(), "key", probe_key(file, manifest));
  cJSON* all = entries();
  cJSON_DeleteItemFromObjectCaseSensitive(all, file.path.c_str());
  cJSON_AddItemToObject(all, file.path.c_str(), entry.release());
  while (cJSON_GetArraySize(all) > kEntriesMax) cJSON_DeleteItemFromArray(all, 0);   // the oldest
  changed_ = true;
}

void ProbeCache::put(const PluginFile& file, const Manifest& manifest, const PluginDescription& description) {
  JsonOwner entry(cJSON_CreateObject());
  cJSON_AddItemToObject(entry.get(), "plugin", description_to_json(description).release());
  store(file, manifest, std::move(entry));
}

void ProbeCache::put_timeout(const PluginFile& file, const Manifest& manifest, uint64_t limit_ms, const Refusal& refusal) {
  uint64_t in_a_row = 1;
  if (usable_ && root_ != nullptr) {             // the one before, of the same key, has run out by now, or was not asked for
    const cJSON* before = cJSON_GetObjectItemCaseSensitive(entries(), file.path.c_str());
    if (cJSON_IsObject(before) && json_string(before, "key") == probe_key(file, manifest))
      if (const cJSON* timeout = cJSON_GetObjectItemCaseSensitive(before, "timeout"); timeout != nullptr)
        in_a_row = std::min<uint64_t>(json_number(timeout, "in_a_row"), 100) + 1;
  }
  JsonOwner entry(cJSON_CreateObject());
  cJSON* timeout = cJSON_AddObjectToObject(entry.get(), "timeout");
  json_add_number(timeout, "in_a_row", in_a_row);
  json_add_number(timeout, "limit_ms", limit_ms);
  json_add_number(timeout, "until_boot_s", boot_seconds() + timeout_kept_s(in_a_row));
  json_add(timeout, "reason", refusal.reason);
  json_add(timeout, "remedy", refusal.remedy);
  store(file, manifest, std::move(entry));
}

void ProbeCache::save(LoadReport& report) {
  if (!usable_ || !changed_) return;
  if (std::string failure = make_private_folder(folder_); !failure.empty()) {
    note(report, failure, "make it, or set XDG_CACHE_HOME to a folder of your own");
    return;
  }
  if (std::string failure = write_private_file(file_path(), json_print(root_.get(), false)); !failure.empty())
    note(report, failure, "free space there, or set XDG_CACHE_HOME to a folder of your own");
}

}  // namespace flhal
