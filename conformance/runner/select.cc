// conformance/runner/select.cc: filters, shards, levels.
#include "runner/select.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

extern const char* const flhal_must_pass[4];   // generated: one text per profile, a line per id

namespace flhal::conformance {

bool matches(std::string_view glob, std::string_view id) {
  size_t g = 0, i = 0, star = std::string_view::npos, from = 0;
  while (i < id.size()) {
    if (g < glob.size() && (glob[g] == '?' || glob[g] == id[i])) {
      ++g, ++i;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++, from = i;
    } else if (star != std::string_view::npos) {
      g = star + 1, i = ++from;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool filter_takes(const std::string& filter, std::string_view id) {
  std::istringstream in(filter);
  bool any_positive = false, taken = false;
  for (std::string glob; std::getline(in, glob, ',');) {
    if (glob.empty()) continue;
    if (glob[0] == '-') {
      if (matches(std::string_view(glob).substr(1), id)) return false;
      continue;
    }
    any_positive = true;
    taken |= matches(glob, id);
  }
  return taken || !any_positive;
}

bool shard_takes(uint32_t shard, uint32_t shards, std::string_view id) { return hash_of(id) % shards == shard - 1; }

std::vector<const Case*> select_cases(uint32_t profiles, const Options& options) {
  std::vector<const Case*> selected;
  for (const Case& c : all_cases())
    if ((profiles >> static_cast<uint32_t>(c.profile) & 1) && filter_takes(options.filter, c.id) &&
        shard_takes(options.shard, options.shards, c.id))
      selected.push_back(&c);
  return selected;
}

const std::vector<std::string>& must_pass(Profile profile) {
  static const std::vector<std::vector<std::string>>& lists = *[] {
    auto* all = new std::vector<std::vector<std::string>>(kProfiles);
    for (uint32_t p = 0; p < kProfiles; ++p) {
      std::istringstream in(flhal_must_pass[p]);
      for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#') (*all)[p].push_back(line);
    }
    return all;
  }();
  return lists[static_cast<uint32_t>(profile)];
}

void judge_level(Report& report, std::vector<std::string>* missing) {
  std::map<std::string_view, const Record*> by_id;
  for (const Record& r : report.records) by_id[r.id] = &r;
  report.level.clear();
  bool previous = true;                    // sync, kernel, async build on each other; ops needs sync
  std::string highest;
  bool sync = false;
  for (uint32_t p = 0; p < kProfiles; ++p) {
    const auto& ids = must_pass(static_cast<Profile>(p));
    const char* name = profile_name(static_cast<Profile>(p));
    size_t faults = 0, absent = 0, unsupported = 0;
    std::string first;
    for (const std::string& id : ids) {
      auto at = by_id.find(id);
      if (at == by_id.end()) {
        ++absent;
      } else if (is_fault(at->second->result)) {
        if (faults++ == 0) first = id;
      } else if (at->second->result == Result::kNotSupported) {
        ++unsupported;
      }
    }
    // A profile of which nothing works is not reached by saying not_supported to everything.
    bool reached = !ids.empty() && faults == 0 && absent == 0 && unsupported < ids.size();
    bool ops = static_cast<Profile>(p) == Profile::kOps;
    if (p == 0) sync = reached;
    if (reached && (ops ? sync : previous)) {
      if (ops) report.level += std::string(highest.empty() ? "" : highest + ", ") + "ops";
      else highest = name;
    } else if (missing != nullptr) {
      if (faults != 0) missing->push_back(fmt::format("{}: {} of {} fail, first {}", name, faults, ids.size(), first));
      else if (absent == ids.size()) missing->push_back(fmt::format("{}: not run; add --profile {}", name, name));
      else if (absent != 0) missing->push_back(fmt::format("{}: {} of {} were not run (filter or shard)", name, absent, ids.size()));
      else if (!reached) missing->push_back(fmt::format("{}: the plugin has none of it", name));
    }
    if (!ops) previous = previous && reached;
  }
  if (report.level.empty()) report.level = highest;
}

}  // namespace flhal::conformance
