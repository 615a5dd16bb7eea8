// src/core/probe_cache.h: what probes answered before, on disk: $XDG_CACHE_HOME/flhal/probe.json (else ~/.cache/flhal).
//
// Idea: an answer belongs to a library by path, time, size and build id, to this boot, to this core, and to the variables
// and files that can change it. A file that is not ours, that others may write, or that cannot be written (full disk)
// costs speed and gives a line in the report; it is never trusted and never an error.
// Good answers are kept; of failures only time-outs, for ten seconds, and twice as long for each further one in a row, up to
// 160 s: a driver that hangs costs new processes its limit now and then, a machine that was busy has its chip soon after.
#pragma once

#include <string>
#include <vector>

#include "core/description_json.h"
#include "core/load_report.h"
#include "core/manifest.h"
#include "core/plugin_file.h"

namespace flhal {

class ProbeCache {
 public:
  // An empty folder: the cache is off, nothing is found and nothing is kept.
  explicit ProbeCache(std::string folder);
  static std::string default_folder();       // "" when there is none, or when privileges were raised

  void load(LoadReport& report);
  struct Answer {
    bool known = false;
    Refusal refusal;                         // a remembered time-out
    PluginDescription description;
  };
  // `limit_ms`: what the asker would wait; a time-out is remembered only for those who would wait no longer.
  Answer find(const PluginFile& file, const Manifest& manifest, uint64_t limit_ms);
  void put(const PluginFile& file, const Manifest& manifest, const PluginDescription& description);
  void put_timeout(const PluginFile& file, const Manifest& manifest, uint64_t limit_ms, const Refusal& refusal);
  void save(LoadReport& report);             // does nothing when nothing changed

  std::string file_path() const { return folder_ + "/probe.json"; }

 private:
  cJSON* entries();
  void store(const PluginFile& file, const Manifest& manifest, JsonOwner entry);

  std::string folder_;
  JsonOwner root_;
  bool usable_ = false, changed_ = false;
};

// Everything an answer depends on, as one text.
std::string probe_key(const PluginFile& file, const Manifest& manifest);

}  // namespace flhal
