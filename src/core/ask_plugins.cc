// src/core/ask_plugins.cc: asks every candidate.
#include "core/ask_plugins.h"

#include <flhal/plugin.h>

#include <chrono>
#include <map>

#include "core/loader.h"
#include "core/log.h"
#include "core/plugin_table_fill.h"

namespace flhal {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

Refusal ask_in_process(const PluginFile& file, const std::string& expected_id, AskedPlugin& out) {
  FLHAL_REFUSE_ON(load_library(file, expected_id, *out.plugin));
  FLHAL_REFUSE_ON(init_plugin(*out.plugin));
  Refusal refusal = describe_plugin(*out.plugin, out.description.get());
  if (refusal) {
    shut_down_plugin(*out.plugin);
    return refusal;
  }
  out.plugin->loaded = true;
  return {};
}

}  // namespace

std::vector<AskedPlugin> ask_plugins(const std::vector<Candidate>& candidates, LoadReport& report) {
  std::vector<AskedPlugin> usable;
  std::map<std::string, std::string> winners;   // id -> path
  for (const Candidate& candidate : candidates) {
    const Clock::time_point start = Clock::now();
    CandidateLine line;
    line.path = candidate.path;
    line.origin = candidate.origin;
    line.id = candidate.manifest.id;
    line.version = candidate.manifest.version;
    if (!candidate.refusal) line.library = candidate.library();
    AskedPlugin asked{std::make_unique<Plugin>(), std::make_unique<PluginDescription>()};
    PluginFile file;
    Refusal refusal = candidate.refusal;
    auto winner = winners.find(line.id);
    if (!refusal && winner == winners.end()) {
      if (candidate.is_manifest) refusal = check_manifest_abi(candidate.manifest);
      if (!refusal) refusal = inspect_plugin_file(candidate.library(), &file);
      line.asked = "in process";
      if (!refusal) refusal = ask_in_process(file, candidate.manifest.id, asked);
      winner = refusal ? winners.end() : winners.find(asked.description->id);
    }
    if (refusal) {
      line.status = "refused";
      line.reason = refusal.reason;
      line.remedy = refusal.remedy;
    } else if (winner != winners.end()) {
      line.status = "duplicate";
      line.reason = fmt::format("the plugin {} was loaded from {} already, which comes first in the search", winner->first, winner->second);
    } else {
      const PluginDescription& d = *asked.description;
      winners[d.id] = candidate.path;
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
      usable.push_back(std::move(asked));
    }
    line.milliseconds = milliseconds_since(start);
    if (line.status == "refused") log(kLogWarn, "plugin not loaded: {}: {}{}{}", line.path, line.reason, line.remedy.empty() ? "" : "; ", line.remedy);
    report.candidates.push_back(std::move(line));
  }
  return usable;
}

}  // namespace flhal
