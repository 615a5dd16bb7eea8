// conformance/runner/main.cc: the program flhal-conformance.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "runner/case.h"
#include "runner/child.h"
#include "runner/groups.h"
#include "runner/mutants.h"
#include "runner/options.h"
#include "runner/report.h"
#include "runner/select.h"
#include "runner/submission.h"
#include "runner/tables.h"
#include "runner/waivers.h"

namespace flhal::conformance {
namespace {

struct Usage { std::string text; };        // exit status 2

// What the plugin is and offers, asked in a child: it may crash or hang.
PluginFacts describe(const std::string& plugin, std::string* offered) {
  PluginFacts facts;
  facts.path = std::filesystem::absolute(plugin).lexically_normal().string();
  std::string ended;
  auto lines = ask_child(own_path(), {"describe", "--plugin", facts.path}, kDefaultLimitMs, &ended);
  Json json = Json::parse(lines.empty() ? "{}" : lines.back());
  facts.id = json_text(json.get(), "id");
  facts.version = json_text(json.get(), "version");
  facts.build_id = json_text(json.get(), "build_id");
  facts.vendor = json_text(json.get(), "vendor");
  *offered = json_text(json.get(), "profiles");
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json.get(), "devices"))
    facts.devices.push_back(fmt::format("{}: {}", json_text(item, "chip"), json_text(item, "product")));
  if (std::string error = json_text(json.get(), "error"); !error.empty()) fmt::print(stderr, "flhal-conformance: {}\n", error);
  if (!ended.empty()) fmt::print(stderr, "flhal-conformance: the process that described the plugin {}\n", ended);
  facts.file_hash = hash_of(read_file(facts.path));
  return facts;
}

std::vector<const Case*> selected(uint32_t profiles, const Options& options) {
  auto cases = select_cases(profiles, options);
  if (!cases.empty()) return cases;
  std::string areas;
  for (const std::string& a : area_names()) areas += (areas.empty() ? "" : ", ") + a;
  throw Usage{fmt::format("no id of profile {} matches --filter {} in shard {}/{}; areas are {}; --list prints the ids",
                          options.profile, options.filter.empty() ? "*" : options.filter, options.shard, options.shards, areas)};
}

int run(Options options) {
  if (options.plugin.empty()) throw Usage{"which plugin? --plugin FILE"};
  if (access(options.plugin.c_str(), R_OK) != 0) throw Usage{fmt::format("--plugin {}: there is no such file, or it is not readable", options.plugin)};
  std::vector<Waiver> waivers;
  if (!options.waivers.empty()) waivers = read_waivers(options.waivers);
  Report report;
  std::string offered;
  report.plugin = describe(options.plugin, &offered);
  if (options.profile.empty()) options.profile = offered.empty() ? "sync" : offered;
  uint32_t profiles = 0;
  std::string error;
  if (!parse_profiles(options.profile, &profiles, &error)) throw Usage{error};
  for (uint32_t p = 0; p < kProfiles; ++p)
    if (profiles >> p & 1) report.profiles.push_back(profile_name(static_cast<Profile>(p)));
  report.seed = options.seed;
  report.selection = options.filter + (options.shards > 1 ? fmt::format(" shard {}/{}", options.shard, options.shards) : "");

  auto cases = selected(profiles, options);
  GroupRun groups{own_path(), report.plugin.path, options.profile, options.seed, options.repeat, options.jobs, options.time_factor, {}, {}};
  size_t done = 0;
  bool progress = !options.quiet && !options.tap && isatty(STDERR_FILENO);
  groups.on_record = [&](const Record& r) {
    ++done;
    if (progress) fmt::print(stderr, "\r\033[K[{}/{}] {}", done, cases.size(), r.id);
    if (is_fault(r.result) && !options.quiet && !options.tap) fmt::print(stderr, "{}{:<11} {}\n", progress ? "\r\033[K" : "", result_name(r.result), r.id);
  };
  report.records = run_groups(groups, cases);
  if (progress) fmt::print(stderr, "\r\033[K");

  auto notes = apply_waivers(report, waivers, today());
  std::vector<std::string> missing;
  judge_level(report, &missing);
  if (!options.report.empty()) write_file(options.report, report_json(report).pretty() + "\n");
  if (!options.junit.empty()) write_file(options.junit, report_junit(report));
  fmt::print("{}", options.tap ? report_tap(report) : report_summary(report, missing, notes));
  for (const Record& r : report.records)
    if (is_fault(r.result)) return 1;
  return 0;
}

int list(Options options) {
  if (options.profile.empty()) options.profile = "async,ops";
  uint32_t profiles = 0;
  std::string error;
  parse_profiles(options.profile, &profiles, &error);
  for (const Case* c : selected(profiles, options)) fmt::print("{}\n", c->id);
  return 0;
}

const std::string& argument(const Options& o, size_t i, const char* what) {
  if (i >= o.arguments.size()) throw Usage{fmt::format("{} needs {}", o.command, what)};
  return o.arguments[i];
}

void put(const Options& o, const std::string& text) {
  if (o.out.empty()) fmt::print("{}", text);
  else write_file(o.out, text);
}

int command(const Options& o) {
  if (o.command == "help") return fmt::print("{}", usage()), 0;
  if (o.command == "child") return run_child(o);
  if (o.command == "describe") return run_describe(o);
  if (o.command == "run" && !o.arguments.empty()) throw Usage{fmt::format("unexpected word \"{}\"", o.arguments[0])};
  if (o.command == "run") return run(o);
  if (o.command == "list") return list(o);
  if (o.command == "mutants") return run_mutants(o);
  if (o.command == "diff") {
    const std::string &before = argument(o, 0, "two results: diff OLD.json NEW.json"), &after = argument(o, 1, "two results: diff OLD.json NEW.json");
    int worse = 0;
    fmt::print("{}", report_diff(report_from_json(read_file(before), before), report_from_json(read_file(after), after), &worse));
    return worse != 0;
  }
  if (o.command == "pack") {
    if (o.plugin.empty()) throw Usage{"pack needs --plugin FILE, the library the result belongs to"};
    put(o, pack(argument(o, 0, "a result: pack REPORT.json"), o.plugin));
    return 0;
  }
  if (o.command == "verify") return fmt::print("{}\n", verify(argument(o, 0, "a submission: verify FILE.json"), o.plugin)), 0;
  const std::string& page = argument(o, 0, "a page: table duties, or table mutants, or table mustpass PROFILE");
  if (page == "duties") put(o, duties_page());
  else if (page == "mutants") put(o, mutants_page());
  else if (page == "mustpass") put(o, must_pass_list(argument(o, 1, "a profile: table mustpass sync")));
  else throw Usage{fmt::format("table {}: valid are duties, mutants, mustpass", page)};
  return 0;
}

}  // namespace
}  // namespace flhal::conformance

int main(int argc, char** argv) {
  using namespace flhal::conformance;
  Options options;
  std::string error;
  if (!parse_options(argc, argv, &options, &error)) {
    fmt::print(stderr, "flhal-conformance: {}\n", error);
    return 2;
  }
  try {
    return command(options);
  } catch (const Usage& u) {
    fmt::print(stderr, "flhal-conformance: {}\n", u.text);
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "flhal-conformance: {}\n", e.what());
    return 1;
  }
}
