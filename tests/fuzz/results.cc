// tests/fuzz/results.cc: files that flhal-conformance reads: results (diff, pack), submissions (verify), waivers.
//
// The first byte says which. A refusal is a std::runtime_error with a sentence; any other end is a fault.
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include "bytes.h"
#include "runner/report.h"
#include "runner/select.h"
#include "runner/submission.h"
#include "runner/waivers.h"

using namespace flhal::conformance;
using namespace flhal::fuzz;

namespace {

// A file in memory, for what takes names.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text) : descriptor_(memfd_create("fuzz", 0)) {
    FLHAL_MUST(descriptor_ >= 0 && write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

const std::string kLibrary = "the bytes of a library";

void result(const std::string& text) {
  Report report = report_from_json(text, "r.json");
  std::vector<std::string> missing;
  judge_level(report, &missing);
  FLHAL_MUST(!report_summary(report, missing, {}).empty());
  FLHAL_MUST(!report_junit(report).empty() && !report_tap(report).empty());
  const std::string written = report_json(report).line();
  FLHAL_MUST(report_json(report_from_json(written, "r.json")).line() == written);
}

void difference(const std::string& before, const std::string& after) {
  int worse = 0;
  report_diff(report_from_json(before, "old.json"), report_from_json(after, "new.json"), &worse);
  FLHAL_MUST(worse >= 0);
}

// `report` inside a submission whose own hashes are right, so that the checks behind them are reached.
void submission_of(const std::string& report) {
  const std::string hash = [] {
    char text[32];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_of(kLibrary)));
    return std::string(text);
  }();
  char report_hash[32];
  std::snprintf(report_hash, sizeof report_hash, "%016llx", static_cast<unsigned long long>(hash_of(report)));
  Json root = Json::object();
  root.set("flhal_submission", 1.0).set("plugin_hash", hash).set("report_hash", report_hash).set("report", report);
  MemoryFile file(root.line()), library(kLibrary);
  FLHAL_MUST(!verify(file.path(), library.path()).empty());
}

void one(char what, Bytes& bytes) {
  switch (what) {
    case 'd': {
      const std::string before = bytes.until(0);
      return difference(before, bytes.rest());
    }
    case 'p': {
      MemoryFile file(bytes.rest()), library(kLibrary);
      pack(file.path(), library.path());
      return;
    }
    case 's': return submission_of(bytes.rest());
    case 'v': {
      MemoryFile file(bytes.rest());
      verify(file.path(), "");
      return;
    }
    case 'w': {
      MemoryFile file(bytes.rest());
      Report report;
      apply_waivers(report, read_waivers(file.path()), "2026-01-01");
      return;
    }
    default: return result(bytes.rest());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const char what = static_cast<char>(bytes.byte());
  try {
    one(what, bytes);
  } catch (const std::runtime_error& e) {
    FLHAL_MUST(*e.what() != 0);
  }
  return 0;
}
