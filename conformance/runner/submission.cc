// conformance/runner/submission.cc: pack and verify.
//
// The hashes find damage and mix-ups. They are no proof against forgery: that takes a signature over this file.
#include "runner/submission.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runner/report.h"
#include "runner/select.h"
#include "runner/waivers.h"

namespace flhal::conformance {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw std::runtime_error(text); }

void check_complete(Report& report, const std::string& file) {
  std::string claimed = report.level;
  std::vector<std::string> missing;
  judge_level(report, &missing);
  if (report.level != claimed) refuse(fmt::format("{} claims the level \"{}\", its records give \"{}\"", file, claimed, report.level));
  if (report.level.empty())
    refuse(fmt::format("{} reaches no level: {}", file, missing.empty() ? "nothing was run" : missing.front()));
  for (const Record& r : report.records)
    if (is_fault(r.result)) refuse(fmt::format("{} has a fault: {} {}: {}; mend it, or waive it with a reason", file, r.id, result_name(r.result), r.text));
}

}  // namespace

std::string pack(const std::string& report_file, const std::string& plugin_file) {
  std::string text = read_file(report_file);
  Report report = report_from_json(text, report_file);
  check_complete(report, report_file);
  uint64_t hash = hash_of(read_file(plugin_file));
  if (hash != report.plugin.file_hash)
    refuse(fmt::format("{} was made with another library than {} ({:016x}, not {:016x}); run the suite again", report_file, plugin_file,
                       report.plugin.file_hash, hash));
  Json root = Json::object();
  root.set("flhal_submission", 1.0).set("plugin_hash", fmt::format("{:016x}", hash));
  root.set("report_hash", fmt::format("{:016x}", hash_of(text))).set("packed", today()).set("report", text);
  return root.pretty() + "\n";
}

std::string verify(const std::string& file, const std::string& plugin_file) {
  Json root = Json::parse(read_file(file));
  if (!root || json_number(root.get(), "flhal_submission") != 1) refuse(fmt::format("{} is no submission; make one with: flhal-conformance pack", file));
  std::string text = json_text(root.get(), "report");
  if (fmt::format("{:016x}", hash_of(text)) != json_text(root.get(), "report_hash")) refuse(fmt::format("the report inside {} was changed after it was packed", file));
  Report report = report_from_json(text, file);
  check_complete(report, file);
  std::string plugin_hash = json_text(root.get(), "plugin_hash");
  if (fmt::format("{:016x}", report.plugin.file_hash) != plugin_hash) refuse(fmt::format("{}: report and submission name different libraries", file));
  if (!plugin_file.empty() && fmt::format("{:016x}", hash_of(read_file(plugin_file))) != plugin_hash)
    refuse(fmt::format("{} belongs to another library than {}", file, plugin_file));
  return fmt::format("{} {} reaches level {} with {} ids, {} of them waived, {} not supported{}", report.plugin.id, report.plugin.version,
                     report.level, report.records.size(), report.count(Result::kWaived), report.count(Result::kNotSupported),
                     plugin_file.empty() ? "; the library was not compared (--plugin FILE does that)" : "; the library is the one that was tested");
}

}  // namespace flhal::conformance
