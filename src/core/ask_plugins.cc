// src/core/ask_plugins.cc: asks every candidate, in four passes.
//
//   1. judge the files: manifest, its ABI statement, the library's own headers
//   2. look into the cache of earlier answers
//   3. ask the others, all at once, each in a child: also those that will say they are fork-safe, for a plugin may lie
//      about that, and what crashes or hangs must do so where it hurts nobody
//   4. in the order of the search: the first usable plugin of an id wins; fork-safe ones are asked again in this process
#include "core/ask_plugins.h"

#include <flhal/plugin.h>

#include <chrono>
#include <map>

#include "core/config.h"
#include "core/config_values.h"
#include "core/loader.h"
#include "core/log.h"
#include "core/plugin_table_fill.h"
#include "core/probe_cache.h"
#include "core/probe_child.h"
#include "layers/frame.h"

namespace flhal {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

struct Work {
  const Candidate* candidate = nullptr;
  PluginFile file;
  Refusal refusal;
  std::string asked;
  size_t same_as = SIZE_MAX;          // another candidate has the same library and manifest id
  bool described = false;             // `description` holds an answer of a child or the cache
  PluginDescription description;
  double milliseconds = 0;
};

std::vector<Work> judge_files(const std::vector<Candidate>& candidates) {
  std::vector<Work> all;
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (const Candidate& candidate : candidates) {
    Work work;
    work.candidate = &candidate;
    const Clock::time_point start = Clock::now();
    work.refusal = candidate.refusal;
    if (!work.refusal && candidate.is_manifest) work.refusal = check_manifest_abi(candidate.manifest);
    if (!work.refusal) work.refusal = inspect_plugin_file(candidate.library(), &work.file);
    if (!work.refusal) {
      auto [place, fresh] = seen.emplace(std::pair(work.file.path, candidate.manifest.id), all.size());
      if (!fresh) work.same_as = place->second;
    }
    work.milliseconds = milliseconds_since(start);
    all.push_back(std::move(work));
  }
  return all;
}

void ask_cache_and_children(std::vector<Work>& all, LoadReport& report) {
  const std::string mode = config_text("probe_cache");
  const uint64_t limit_ms = parse_integer(config_text("probe_timeout_ms"), 1, UINT32_MAX).value_or(10000);
  ProbeCache cache(mode == "off" ? "" : ProbeCache::default_folder());
  cache.load(report);
  std::vector<ProbeTask> tasks;
  std::vector<Work*> asked;
  for (Work& work : all) {
    if (work.refusal || work.same_as != SIZE_MAX) continue;
    ProbeCache::Answer answer;
    if (mode != "refresh") answer = cache.find(work.file, work.candidate->manifest, limit_ms);
    if (answer.known) {
      work.asked = "from the cache";
      work.refusal = answer.refusal;
      work.description = std::move(answer.description);
      work.described = !work.refusal;
    } else {
      ProbeTask task;
      task.library = work.file.path;
      task.expected_id = work.candidate->manifest.id;
      tasks.push_back(std::move(task));
      asked.push_back(&work);
    }
  }
  if (tasks.empty()) return;
  const std::string helper = probe_helper();
  if (helper.empty()) {
    report.notes.push_back({"error", "flhal-probe", "the helper flhal-probe was not found, so plugins are asked in this process, where a broken one can end it",
                            "install flhal again, or set FLHAL_PROBE_HELPER to its path"});
    return;
  }
  probe_in_children(helper, limit_ms, tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    Work& work = *asked[i];
    work.asked = "in a child";
    work.milliseconds += tasks[i].milliseconds;
    work.refusal = std::move(tasks[i].refusal);
    if (!work.refusal) {
      work.described = true;
      work.description = std::move(tasks[i].description);
      cache.put(work.file, work.candidate->manifest, work.description);
    } else if (tasks[i].timed_out) {
      cache.put_timeout(work.file, work.candidate->manifest, limit_ms, work.refusal);
    }
  }
  cache.save(report);
}

Refusal ask_in_process(const Work& work, AskedPlugin& out) {
  FLHAL_REFUSE_ON(load_library(work.file, work.candidate->manifest.id, *out.plugin));
  layers_attach(*out.plugin);
  Refusal refusal = init_plugin(*out.plugin);
  if (!refusal) refusal = describe_plugin(*out.plugin, out.description.get());
  if (refusal) {
    shut_down_plugin(*out.plugin);
    layers_detach(*out.plugin);
    return refusal;
  }
  out.plugin->loaded = true;
  return {};
}

// A plugin that is known from a child only: named, with stubs, loaded by the first open of a device.
void take_description(const Work& work, AskedPlugin& out) {
  *out.description = work.description;
  Plugin& plugin = *out.plugin;
  const PluginDescription& d = work.description;
  plugin.id = d.id;
  plugin.version = d.version;
  plugin.build_id = d.build_id;
  plugin.vendor = d.vendor;
  plugin.library_path = work.file.path;
  plugin.negotiated_minor = d.abi_minor;
  plugin.flags = d.flags;
  plugin.serialize_all = (d.flags & FLHAL_PLUGIN_SERIALIZE_ALL) != 0;
  plugin.has_ops = d.has_ops;
  plugin.has_kernels = d.has_kernels;
  plugin.has_streams = d.has_streams;
  plugin.has_host_access = d.has_host_access;
  plugin.has_budget = d.has_budget;
  fill_stubs(plugin);
}

CandidateLine line_of(const Work& work) {
  CandidateLine line;
  line.path = work.candidate->path;
  line.origin = work.candidate->origin;
  line.id = work.candidate->manifest.id;
  line.version = work.candidate->manifest.version;
  line.library = work.candidate->library();
  return line;
}

void tell_loaded(CandidateLine& line, const PluginDescription& d) {
  line.status = "loaded";
  line.id = d.id;
  line.version = d.version;
  line.vendor = d.vendor;
  line.build_id = d.build_id;
  line.loaded_path = d.loaded_path;
  line.abi = fmt::format("{}.{}", FLHAL_PLUGIN_ABI_MAJOR, d.abi_minor);
  line.devices = static_cast<uint32_t>(d.devices.size());
  line.notes = d.notes;
  if (d.devices.empty()) line.notes.push_back("it found no chip");
}

}  // namespace

std::vector<AskedPlugin> ask_plugins(const std::vector<Candidate>& candidates, LoadReport& report) {
  std::vector<Work> all = judge_files(candidates);
  ask_cache_and_children(all, report);
  std::vector<AskedPlugin> usable;
  std::map<std::string, std::string> winners;   // id -> path
  for (Work& work : all) {
    if (work.same_as != SIZE_MAX) {              // what became of the first one, became of this one
      const Work& first = all[work.same_as];
      work.refusal = first.refusal;
      work.described = first.described;
      work.description = first.description;
      work.asked = first.asked;
    }
    const Clock::time_point start = Clock::now();
    CandidateLine line = line_of(work);
    line.asked = work.asked;
    std::string id = work.described ? work.description.id : line.id;
    if (!work.refusal && !winners.count(id)) {
      AskedPlugin asked{std::make_unique<Plugin>(), std::make_unique<PluginDescription>()};
      if (work.described && !(work.description.flags & FLHAL_PLUGIN_FORK_SAFE_PROBE)) {
        take_description(work, asked);
      } else {
        work.refusal = ask_in_process(work, asked);
        line.asked += line.asked.empty() ? "in process" : ", then in process";
      }
      id = asked.description->id;
      if (!work.refusal && !winners.count(id)) {
        winners[id] = line.path;
        tell_loaded(line, *asked.description);
        usable.push_back(std::move(asked));
      } else if (!work.refusal) {
        shut_down_plugin(*asked.plugin);
        layers_detach(*asked.plugin);
      }
    }
    if (work.refusal) {
      line.status = "refused";
      line.reason = work.refusal.reason;
      line.remedy = work.refusal.remedy;
      log(kLogWarn, "plugin not loaded: {}: {}", line.path, work.refusal.sentence());
    } else if (line.status.empty()) {
      line.status = "duplicate";
      line.id = id;
      line.reason = fmt::format("the plugin {} was loaded from {} already, which comes first in the search", id, winners[id]);
    }
    line.milliseconds = work.milliseconds + milliseconds_since(start);
    report.candidates.push_back(std::move(line));
  }
  return usable;
}

}  // namespace flhal
