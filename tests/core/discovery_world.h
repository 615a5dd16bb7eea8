// tests/core/discovery_world.h: discovery over a folder of one's own, in this process, without freezing anything.
#pragma once

#include <catch2/catch.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/discovery.h"
#include "support/hostile_files.h"
#include "support/test_world.h"

namespace flhal::test {

// discover(), whose result lives as long as the process, as the frozen one does: its devices and plugins are never destroyed, and
// leak checkers find them here.
inline Discovery* discover_here(const SearchInput& input, const std::string& visible) {
  static auto& living = *new std::vector<std::unique_ptr<Discovery>>;
  return living.emplace_back(discover(input, visible)).get();
}

// A TestWorld whose plugin folder is searched by discover(). The cache of probes is the world's own: XDG_CACHE_HOME of
// this process points into the world while it lives.
class DiscoveryWorld : public TestWorld {
 public:
  DiscoveryWorld() {
    (void)config_set("log_level", "error");
    setenv("XDG_CACHE_HOME", (folder() / "cache").c_str(), 1);
  }

  SearchInput input() const {
    SearchInput search;
    search.plugin_files = plugin_folder().string();
    return search;
  }
  Discovery* look(const std::string& visible = "") const { return discover_here(input(), visible); }
};

// The line of a candidate whose path ends in `name`.
inline const CandidateLine& line_of(const Discovery& found, const std::string& name) {
  for (const CandidateLine& line : found.report.candidates)
    if (line.path.ends_with(name)) return line;
  INFO(found.report.json());
  FAIL("the report has no line for " << name);
  throw std::logic_error(name);
}

inline std::string names_of(const Discovery& found) { return name_list(found.listed); }

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace flhal::test
