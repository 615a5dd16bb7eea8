// conformance/runner/options.h: the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flhal::conformance {

struct Options {
  std::string command = "run";             // run, list, mutants, diff, pack, verify, table, child, describe
  std::vector<std::string> arguments;      // of the command, and ids of a child
  std::string plugin;
  std::string profile;                     // "" = what the plugin's table offers
  std::string filter;
  std::string report, junit, waivers, out;
  std::string mutant_folder, plugin_folder;
  std::string mutant_report;
  uint64_t seed = 1;
  uint32_t repeat = 1, shard = 1, shards = 1, jobs = 1;
  double time_factor = 1;
  bool tap = false, quiet = false, all_cases = false;
};

// Fills *out; or returns false and leaves a sentence that lists what is valid in *error.
bool parse_options(int argc, char** argv, Options* out, std::string* error);
std::string usage();

// "kernel,ops" -> bits, each with what it contains; false: *error lists the valid ones.
bool parse_profiles(const std::string& text, uint32_t* bits, std::string* error);

}  // namespace flhal::conformance
