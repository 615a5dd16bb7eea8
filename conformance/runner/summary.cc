// conformance/runner/summary.cc: what a person reads after a run, and the difference of two runs.
#include <fmt/format.h>

#include <map>

#include "runner/case.h"
#include "runner/duties.h"
#include "runner/report.h"

namespace flhal::conformance {
namespace {

constexpr size_t kFaultsShown = 20;

// One step, the one that helps most: faults in the order of areas, for an early one explains later ones.
std::string next_step(const Report& report, const std::vector<std::string>& missing) {
  for (const Record& r : report.records) {
    if (!is_fault(r.result)) continue;
    std::string step = fmt::format("make {} pass", r.id);
    const Case* c = find_case(r.id);
    if (c != nullptr)
      for (const std::string& name : duties_of(c->duties))
        if (const Duty* d = find_duty(name)) step += fmt::format("\n             {} ({}): {}", name, d->slot, d->text);
    return step + fmt::format("\n             again: --filter {}", r.id);
  }
  if (!missing.empty()) return missing.front();
  return "pack this result: flhal-conformance pack REPORT.json --plugin FILE --out FILE";
}

}  // namespace

std::string report_summary(const Report& report, const std::vector<std::string>& missing, const std::vector<std::string>& notes) {
  std::string text = "\n";
  size_t shown = 0, faults = 0;
  for (const Record& r : report.records) {
    if (!is_fault(r.result) || ++faults > kFaultsShown) continue;
    ++shown;
    text += fmt::format("{:<11} {}\n            {}\n", result_name(r.result), r.id, r.text);
  }
  if (faults > shown) text += fmt::format("            ... and {} more; --report FILE has them all\n", faults - shown);
  for (const Record& r : report.records)
    if (r.result == Result::kWarning) text += fmt::format("{:<11} {}\n            {}\n", "warning", r.id, r.text);
  for (const std::string& n : notes) text += fmt::format("{:<11} {}\n", "waiver", n);

  std::map<std::string, std::map<Result, uint32_t>> areas;
  for (const Record& r : report.records) ++areas[r.id.substr(0, r.id.find('.'))][r.result];
  text += fmt::format("\n{:<9} {:>6} {:>6} {:>14} {:>8} {:>8}\n", "area", "pass", "fault", "not supported", "warning", "waived");
  for (const std::string& area : area_names()) {
    auto at = areas.find(area);
    if (at == areas.end()) continue;
    auto& n = at->second;
    uint32_t wrong = n[Result::kFail] + n[Result::kCrash] + n[Result::kTimeout] + n[Result::kDeviceLost];
    text += fmt::format("{:<9} {:>6} {:>6} {:>14} {:>8} {:>8}\n", area, n[Result::kPass], wrong, n[Result::kNotSupported], n[Result::kWarning], n[Result::kWaived]);
  }
  text += fmt::format("\nplugin     {} {} ({})\n", report.plugin.id, report.plugin.version, report.plugin.vendor);
  for (const std::string& d : report.plugin.devices) text += fmt::format("chip       {}\n", d);
  text += fmt::format("ids        {}: {} pass, {} fail, {} crash, {} timeout, {} device lost, {} not supported, {} warning, {} waived\n",
                      report.records.size(), report.count(Result::kPass), report.count(Result::kFail), report.count(Result::kCrash),
                      report.count(Result::kTimeout), report.count(Result::kDeviceLost), report.count(Result::kNotSupported),
                      report.count(Result::kWarning), report.count(Result::kWaived));
  text += fmt::format("level      {}\n", report.level.empty() ? "none yet" : report.level);
  for (const std::string& m : missing) text += fmt::format("open       {}\n", m);
  return text + fmt::format("next step  {}\n", next_step(report, missing));
}

std::string report_diff(const Report& before, const Report& after, int* worse) {
  std::map<std::string, const Record*> old_by_id, new_by_id;
  for (const Record& r : before.records) old_by_id[r.id] = &r;
  for (const Record& r : after.records) new_by_id[r.id] = &r;
  std::string got_worse, got_better, changed, added, gone;
  *worse = 0;
  for (const Record& now : after.records) {
    auto at = old_by_id.find(now.id);
    std::string reason = now.text.empty() ? "" : ": " + now.text;
    if (at == old_by_id.end()) {
      added += fmt::format("new        {} {}{}\n", now.id, result_name(now.result), is_fault(now.result) ? reason : "");
      *worse += is_fault(now.result);
      continue;
    }
    const Record& was = *at->second;
    if (was.result == now.result) continue;
    std::string line = fmt::format("{} {} -> {}{}\n", now.id, result_name(was.result), result_name(now.result), reason);
    bool lost = is_fault(now.result) || (was.result == Result::kPass && now.result == Result::kNotSupported);
    if (lost && !is_fault(was.result)) got_worse += "worse      " + line, ++*worse;
    else if (is_fault(was.result) && !is_fault(now.result)) got_better += "better     " + line;
    else changed += "changed    " + line;
  }
  for (const Record& was : before.records)
    if (!new_by_id.count(was.id)) gone += fmt::format("not run    {} (was {})\n", was.id, result_name(was.result));
  std::string text = got_worse + got_better + changed + added + gone;
  return (text.empty() ? "no difference\n" : text) +
         fmt::format("level      {} -> {}\n", before.level.empty() ? "none" : before.level, after.level.empty() ? "none" : after.level);
}

}  // namespace flhal::conformance
