// conformance/runner/mutants.cc: every mutant has to be caught by the case that mutants.def names.
//
// A mutant is the library libflhal_mutant.so with two variables: which mutation, and of which plugin. The unchanged plugin
// runs through the same wrapper first ("none"): a case that fails there proves nothing about the mutants.
#include "runner/mutants.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "runner/case.h"
#include "runner/groups.h"
#include "runner/report.h"
#include "runner/select.h"

namespace flhal::conformance {

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> mutants = {
#define FLHAL_MUTANT(name, base, slot, wrong, duties, caught_by) Mutant{#name, #base, slot, wrong, duties, caught_by},
#include "mutants/mutants.def"
#undef FLHAL_MUTANT
  };
  return mutants;
}

namespace {

struct Folders {
  std::filesystem::path mutants, plugins;
  std::string library(const Mutant& m) const {
    // What a table cannot change is a library of its own.
    auto own = mutants / fmt::format("libflhal_mutant_{}.so", m.name);
    return std::filesystem::exists(own) ? own.string() : (mutants / "libflhal_mutant.so").string();
  }
  std::string base(const std::string& id) const { return (plugins / fmt::format("libflhal_plugin_{}.so", id)).string(); }
};

std::vector<Record> run_one(const Options& o, const std::string& library, const std::string& mutant, const std::string& base,
                            const std::vector<const Case*>& cases) {
  GroupRun run{own_path(), library, "async,ops", o.seed, 1, o.jobs, 0.5 * o.time_factor, {}, {}};
  run.environment = {{"FLHAL_MUTANT", mutant}, {"FLHAL_MUTANT_BASE", base}};
  return run_groups(run, cases);
}

}  // namespace

int run_mutants(const Options& o) {
  if (all_mutants().empty()) throw std::runtime_error("mutants.def has no rows yet: there is nothing to run");
  auto beside = std::filesystem::path(own_path()).parent_path();
  Folders folders{o.mutant_folder.empty() ? beside / "flhal_mutants.d" : std::filesystem::path(o.mutant_folder),
                  o.plugin_folder.empty() ? beside / ".." / "flhal_plugins.d" : std::filesystem::path(o.plugin_folder)};
  if (!std::filesystem::exists(folders.mutants / "libflhal_mutant.so"))
    throw std::runtime_error(fmt::format("{} has no libflhal_mutant.so; name its folder with --mutant-folder", folders.mutants.string()));

  std::vector<const Mutant*> wanted;
  std::map<std::string, std::set<const Case*>> controls;
  for (const Mutant& m : all_mutants()) {
    if (!filter_takes(o.filter, m.name)) continue;
    if (!std::filesystem::exists(folders.base(m.base))) {
      fmt::print("skipped    {}: {} is not built\n", m.name, folders.base(m.base));
      continue;
    }
    const Case* c = find_case(m.caught_by);
    if (c == nullptr) throw std::runtime_error(fmt::format("mutants.def: {} names the case {}, which does not exist", m.name, m.caught_by));
    wanted.push_back(&m);
    controls[m.base].insert(c);
  }
  if (wanted.empty()) throw std::runtime_error("no mutant matches the filter, or no plugin they are made of is built");

  int faults = 0;
  for (auto& [base, cases] : controls) {
    std::vector<const Case*> ordered;
    for (const Case& c : all_cases())
      if (cases.count(&c)) ordered.push_back(&c);
    for (const Record& r : run_one(o, (folders.mutants / "libflhal_mutant.so").string(), "none", folders.base(base), ordered)) {
      if (r.result == Result::kPass || r.result == Result::kWarning) continue;
      fmt::print("CONTROL    {} without a mutation: {} {}: {}\n", base, r.id, result_name(r.result), r.text);
      ++faults;
    }
  }
  size_t caught = 0;
  for (const Mutant* m : wanted) {
    std::vector<const Case*> cases;
    const Case* expected = find_case(m->caught_by);
    for (const Case& c : all_cases())
      if (o.all_cases ? c.area() != "perf" : &c == expected) cases.push_back(&c);
    bool noticed = false;
    for (const Record& r : run_one(o, folders.library(*m), m->name, folders.base(m->base), cases)) {
      if (r.id == m->caught_by) {
        noticed = is_fault(r.result) || (r.result == Result::kWarning && expected->area() == "perf");   // those only warn
        fmt::print("{:<10} {} ({}): {} {}{}{}\n", noticed ? "caught" : "MISSED", m->name, m->base, r.id, result_name(r.result), r.text.empty() ? "" : ": ", r.text);
      } else if (is_fault(r.result)) {
        fmt::print("also       {} ({}): {} {}\n", m->name, m->base, r.id, result_name(r.result));
      }
    }
    caught += noticed;
    std::fflush(stdout);
  }
  fmt::print("{} of {} mutants caught by the case that is named for them\n", caught, wanted.size());
  return faults == 0 && caught == wanted.size() ? 0 : 1;
}

}  // namespace flhal::conformance
