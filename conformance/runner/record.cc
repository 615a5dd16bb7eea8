// conformance/runner/record.cc: names of results, and small things every report needs.
#include "runner/record.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace flhal::conformance {

namespace {
constexpr const char* kNames[kResults] = {"pass", "fail", "not_supported", "waived", "warning", "crash", "timeout", "device_lost"};
}

const char* result_name(Result r) { return kNames[static_cast<uint8_t>(r)]; }
bool result_of(std::string_view name, Result* out) {
  for (uint8_t i = 0; i < kResults; ++i)
    if (name == kNames[i]) return *out = static_cast<Result>(i), true;
  return false;
}

const Record* Report::find(std::string_view id) const {
  for (const Record& r : records)
    if (r.id == id) return &r;
  return nullptr;
}
uint32_t Report::count(Result result) const {
  uint32_t n = 0;
  for (const Record& r : records) n += r.result == result;
  return n;
}

uint64_t hash_of(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}
void write_file(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

}  // namespace flhal::conformance
