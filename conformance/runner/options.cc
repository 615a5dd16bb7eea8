// conformance/runner/options.cc: one row per option; parsing, the usage text and the refusals read the same rows.
#include "runner/options.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <sstream>

#include "runner/case.h"

namespace flhal::conformance {
namespace {

struct Row {
  const char* name;
  const char* value;                       // nullptr: takes none
  const char* meaning;
  std::function<bool(Options&, const std::string&)> set;   // false: the value does not parse
};

template <typename T>
bool number(const std::string& text, T* out, T least) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= least;
}

auto text_of(std::string Options::*member) {
  return [member](Options& o, const std::string& v) { return o.*member = v, !v.empty(); };
}
auto command_of(const char* name) {
  return [name](Options& o, const std::string&) { return o.command = name, true; };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"--plugin", "FILE", "the plugin's library, e.g. build/flhal_plugins.d/libflhal_plugin_mychip.so", text_of(&Options::plugin)},
      {"--profile", "LIST", "sync, kernel, async, ops or a comma list; default: what the plugin's tables offer", text_of(&Options::profile)},
      {"--filter", "GLOBS", "only ids that match one of these, comma separated: memory.*, -op.* takes away", text_of(&Options::filter)},
      {"--list", nullptr, "print the selected ids and end", command_of("list")},
      {"--report", "FILE", "write the results as JSON", text_of(&Options::report)},
      {"--junit", "FILE", "write the results as JUnit XML", text_of(&Options::junit)},
      {"--tap", nullptr, "print TAP instead of the summary", [](Options& o, const std::string&) { return o.tap = true; }},
      {"--quiet", nullptr, "print the summary only, no progress", [](Options& o, const std::string&) { return o.quiet = true; }},
      {"--seed", "N", "seed of all random values; default 1", [](Options& o, const std::string& v) { return number<uint64_t>(v, &o.seed, 0); }},
      {"--repeat", "N", "run each case N times; the worst result counts", [](Options& o, const std::string& v) { return number<uint32_t>(v, &o.repeat, 1); }},
      {"--jobs", "N", "groups at once; default 1", [](Options& o, const std::string& v) { return number<uint32_t>(v, &o.jobs, 1); }},
      {"--shard", "I/N", "only the I-th of N parts; the parts together are everything",
       [](Options& o, const std::string& v) {
         size_t slash = v.find('/');
         return slash != std::string::npos && number<uint32_t>(v.substr(0, slash), &o.shard, 1) &&
                number<uint32_t>(v.substr(slash + 1), &o.shards, 1) && o.shard <= o.shards;
       }},
      {"--time-factor", "X", "multiplies every time limit, for slow machines and sanitizers; default 1",
       [](Options& o, const std::string& v) {
         std::istringstream in(v);
         return static_cast<bool>(in >> o.time_factor) && in.eof() && o.time_factor > 0;
       }},
      {"--waivers", "FILE", "known faults: id, last day, reason; see waivers/README.md", text_of(&Options::waivers)},
      {"--mutants", nullptr, "run the wrong plugins and show which case catches each", command_of("mutants")},
      {"--mutant-folder", "DIR", "where libflhal_mutant.so lies; default: flhal_mutants.d beside this program", text_of(&Options::mutant_folder)},
      {"--plugin-folder", "DIR", "where the plugins that mutants are made of lie; default: ../flhal_plugins.d", text_of(&Options::plugin_folder)},
      {"--all-cases", nullptr, "with --mutants: every case against every mutant, for the table", [](Options& o, const std::string&) { return o.all_cases = true; }},
      {"--out", "FILE", "where pack and table write; default: standard output", text_of(&Options::out)},
  };
  return all;
}

const std::vector<std::pair<const char*, const char*>> kCommands = {
    {"diff", "OLD.json NEW.json     what changed between two results; exit status 1 when something got worse"},
    {"pack", "REPORT.json           --plugin FILE --out FILE: one file that proves a result"},
    {"verify", "SUBMISSION.json     whether it is whole, and belongs to --plugin FILE when given"},
    {"table", "duties | mutants     the generated reference pages"},
};

}  // namespace

std::string usage() {
  std::string text =
      "usage: flhal-conformance --plugin FILE [options]\n"
      "       flhal-conformance --mutants [options]\n";
  for (auto& [name, rest] : kCommands) text += fmt::format("       flhal-conformance {} {}\n", name, rest);
  text += "\n";
  for (const Row& r : rows())
    text += fmt::format("  {:<24} {}\n", r.value != nullptr ? fmt::format("{} {}", r.name, r.value) : r.name, r.meaning);
  return text + "\nexit status: 0 nothing failed, 1 something did, 2 the command line is wrong\n";
}

bool parse_options(int argc, char** argv, Options* out, std::string* error) {
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t i = 0;
  if (!words.empty() && words[0][0] != '-') {
    bool known = words[0] == "child" || words[0] == "describe";   // the program's own children
    std::string names;
    for (auto& [name, rest] : kCommands) {
      known |= words[0] == name;
      names += std::string(names.empty() ? "" : ", ") + name;
    }
    if (!known) return *error = fmt::format("unknown command \"{}\"; valid are {}, or options only", words[0], names), false;
    out->command = words[i++];
  }
  for (; i < words.size(); ++i) {
    std::string name = words[i], value;
    if (name.empty() || name[0] != '-') {
      out->arguments.push_back(name);
      continue;
    }
    if (name == "--help" || name == "-h") return out->command = "help", true;
    if (name == "--") {
      out->arguments.insert(out->arguments.end(), words.begin() + static_cast<long>(i) + 1, words.end());
      break;
    }
    size_t equal = name.find('=');
    bool glued = equal != std::string::npos;
    if (glued) value = name.substr(equal + 1), name.resize(equal);
    const Row* row = nullptr;
    std::string names;
    for (const Row& r : rows()) {
      if (name == r.name) row = &r;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
    }
    if (row == nullptr) return *error = fmt::format("unknown option \"{}\"; valid are {}", name, names), false;
    if (row->value != nullptr && !glued) {
      if (i + 1 == words.size()) return *error = fmt::format("{} needs a value: {} {}", name, name, row->value), false;
      value = words[++i];
    }
    if (row->value == nullptr && glued) return *error = fmt::format("{} takes no value", name), false;
    if (!row->set(*out, value))
      return *error = fmt::format("{} {}: not understood; {} {}: {}", name, value, name, row->value, row->meaning), false;
  }
  uint32_t bits;
  return out->profile.empty() || parse_profiles(out->profile, &bits, error);
}

bool parse_profiles(const std::string& text, uint32_t* bits, std::string* error) {
  static constexpr uint32_t kContains[kProfiles] = {0b0001, 0b0011, 0b0111, 0b1000};
  *bits = 0;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    bool known = false;
    for (uint32_t p = 0; p < kProfiles; ++p)
      if (word == profile_name(static_cast<Profile>(p))) *bits |= kContains[p], known = true;
    if (!known) return *error = fmt::format("--profile {}: valid are sync, kernel, async, ops, and comma lists of them", text), false;
  }
  if (*bits == 0) *error = "--profile needs a name: sync, kernel, async or ops";
  return *bits != 0;
}

}  // namespace flhal::conformance
