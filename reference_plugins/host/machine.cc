// reference_plugins/host/machine.cc: the processor's name, an identity that survives a reboot, and how much memory there
// is. Everything comes from /etc, /proc and /sys, so that asking is safe before a fork and costs under a millisecond.
#include "machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

namespace flhal::host {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value behind "key   : value" of the first such line.
std::string value_of(const char* path, const char* key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, std::strlen(key), key) != 0) continue;
    size_t at = line.find_first_not_of(" \t:", line.find(':'));
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

uint64_t number_in(const std::string& text, uint64_t otherwise) {
  char* end = nullptr;
  unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  return end == text.c_str() ? otherwise : value;   // "max" is no number: no limit
}

std::string machine_identity(const std::string& product) {
  for (const char* path : {"/etc/machine-id", "/var/lib/dbus/machine-id"}) {
    std::string id = first_line(path);
    if (id.size() >= 32) return id;
  }
  utsname names{};
  uname(&names);
  return std::string(names.nodename) + "/" + product;   // containers without a machine id: at least the same each time
}

// Files of the cgroups this process is in, from its own one up to the root; version 2 and 1.
template <class F>
void for_each_memory_cgroup(F&& visit) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    while (true) {
      if (path == "/") path.clear();
      visit(root + path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"),
            root + path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
}

}  // namespace

// FNV-1a, twice with different starts. The machine id itself must not leave the machine (machine-id(5)), so the uuid
// is a hash of it and of a constant of ours.
void hash_to_uuid(const std::string& text, uint8_t out[16]) {
  for (int half = 0; half < 2; ++half) {
    uint64_t h = 14695981039346656037ull ^ (half * 0x9e3779b97f4a7c15ull);
    for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9ull;
    h ^= h >> 29;
    std::memcpy(out + 8 * half, &h, 8);
  }
  out[6] = static_cast<uint8_t>((out[6] & 0x0f) | 0x80);   // version 8: made from own data (RFC 9562)
  out[8] = static_cast<uint8_t>((out[8] & 0x3f) | 0x80);
}

Machine read_machine() {
  Machine m{};
  m.product = value_of("/proc/cpuinfo", "model name");
  if (m.product.empty()) m.product = "host processor";
  m.vendor = value_of("/proc/cpuinfo", "vendor_id");
  utsname names{};
  uname(&names);
  m.driver = std::string(names.sysname) + " " + names.release;
  hash_to_uuid("flhal host device 1/" + machine_identity(m.product), m.uuid);

  m.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for_each_memory_cgroup([&](const std::string& limit, const std::string&) {
    m.memory_bytes = std::min(m.memory_bytes, number_in(first_line(limit), kNoLimit));
  });

  m.vector_bytes = 16;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) m.vector_bytes = 32;
  if (__builtin_cpu_supports("avx512f")) m.vector_bytes = 64;
#endif
  m.fingerprint = m.product + "/" + names.machine + "/" + std::to_string(m.vector_bytes);
  return m;
}

uint64_t available_memory() {
  uint64_t available = number_in(value_of("/proc/meminfo", "MemAvailable"), kNoLimit / 1024) * 1024;
  for_each_memory_cgroup([&](const std::string& limit, const std::string& usage) {
    uint64_t max = number_in(first_line(limit), kNoLimit);
    if (max == kNoLimit) return;
    uint64_t used = number_in(first_line(usage), 0);
    available = std::min(available, max > used ? max - used : 0);
  });
  return available;
}

}  // namespace flhal::host
