// tests/core/search_path_test.cc: places, their order, and what a folder gives.
#include "core/search_path.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "support/test_world.h"

using namespace flhal;
using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, const std::string& text = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void manifest(const fs::path& path, const std::string& id, const std::string& library) {
  put(path, "{\"flhal_manifest\": 1, \"id\": \"" + id + "\", \"library\": \"" + library + "\"}");
}

std::string found(const SearchInput& input, LoadReport* report_out = nullptr) {
  LoadReport report;
  std::string text;
  for (const Candidate& c : find_candidates(input, report)) text += (text.empty() ? "" : " ") + fs::path(c.path).filename().string();
  if (report_out) *report_out = report;
  return text;
}

const PlaceLine* place(const LoadReport& report, const fs::path& path) {
  for (const PlaceLine& line : report.places)
    if (line.path == path.string()) return &line;
  return nullptr;
}

}  // namespace

TEST_CASE("search: the documented order, each place with its line", "[core][search]") {
  TestWorld world;
  const fs::path f = world.folder();
  // An installed libflhal in <f>/site/torch_fl/lib.
  const fs::path lib = f / "site/torch_fl/lib";
  fs::create_directories(lib);
  manifest(f / "add/a.json", "a", "a.so");
  manifest(f / "path/b.json", "b", "b.so");
  manifest(f / "added/c.json", "c", "c.so");
  manifest(f / "site/flhal_plugins.d/d.json", "d", "d.so");
  manifest(lib / "flhal_plugins.d/e.json", "e", "e.so");
  manifest(f / "site/torch_fl/share/flhal/plugins.d/f.json", "f", "f.so");
  manifest(f / "home/.local/share/flhal/plugins.d/g.json", "g", "g.so");
  SearchInput input;
  input.add_plugin_files = (f / "add").string() + ":" + (f / "nowhere").string();
  input.plugin_path = (f / "path").string();
  input.plugin_path_source = "TORCH_FL_PLUGIN_PATH";
  input.added = {(f / "added/c.json").string()};
  input.own_folder = lib.string();
  input.home = (f / "home").string();
  LoadReport report;
  CHECK(found(input, &report) == "a.json b.json c.json d.json e.json f.json g.json");
  REQUIRE(place(report, f / "nowhere"));
  CHECK(place(report, f / "nowhere")->status == "missing");
  CHECK(place(report, f / "nowhere")->origin == "FLHAL_ADD_PLUGIN_FILES");
  CHECK(place(report, "/etc/flhal/plugins.d"));          // a line also where nothing is found
  CHECK(place(report, f / "path")->found == 1);

  input.plugin_files = (f / "path").string();            // replaces all, and says so
  CHECK(found(input, &report) == "b.json");
  CHECK(place(report, f / "add")->status == "ignored");
  CHECK(place(report, f / "add")->reason == "FLHAL_PLUGIN_FILES replaces the search");
  CHECK_FALSE(place(report, "/etc/flhal/plugins.d"));
  input.plugin_files_source = "TORCH_FL_PLUGIN_FILES";   // the name that counted is told
  LoadReport renamed;
  CHECK(found(input, &renamed) == "b.json");
  REQUIRE(place(renamed, f / "add"));
  CHECK(place(renamed, f / "add")->reason == "TORCH_FL_PLUGIN_FILES replaces the search");
}

TEST_CASE("LOAD-06 search: the order in which a folder lists its entries decides nothing", "[core][search][LOAD-06]") {
  // Method: the same entries made in every order in fresh folders; file systems list by creation or by hash.
  std::vector<std::string> names = {"m.json", "a.json", "z.json", "k.json"};
  std::sort(names.begin(), names.end());
  do {
    TestWorld world;
    for (const std::string& name : names) manifest(world.plugin_folder() / name, name.substr(0, 1), "none.so");
    SearchInput input;
    input.plugin_files = world.plugin_folder().string();
    CHECK(found(input) == "a.json k.json m.json z.json");
  } while (std::next_permutation(names.begin(), names.end()));
}

TEST_CASE("search: a folder gives manifests, then plugin libraries that no manifest names", "[core][search]") {
  TestWorld world;
  const fs::path d = world.plugin_folder();
  manifest(d / "chip.json", "chip", "libflhal_plugin_chip.so");
  put(d / "libflhal_plugin_chip.so");
  put(d / "libflhal_plugin_bare.so");
  put(d / "libacme_runtime.so");
  put(d / "README.txt");
  put(d / ".hidden.json");
  SearchInput input;
  input.plugin_files = d.string();
  CHECK(found(input) == "chip.json libflhal_plugin_bare.so");
  input.plugin_files = (d / "libacme_runtime.so").string();      // named by itself, any name will do
  CHECK(found(input) == "libacme_runtime.so");
}

TEST_CASE("search: a list may be empty in parts, name a file twice, and be relative", "[core][search]") {
  TestWorld world;
  const fs::path d = world.plugin_folder();
  manifest(d / "chip.json", "chip", "x.so");
  SearchInput input;
  input.plugin_files = "::" + d.string() + ":" + (d / "chip.json").string() + ":" + d.string() + "/../flhal_plugins.d/:";
  CHECK(found(input) == "chip.json");
  fs::path before = fs::current_path();
  fs::current_path(world.folder());
  input.plugin_files = "flhal_plugins.d";
  CHECK(found(input) == "chip.json");
  fs::current_path(before);
}

TEST_CASE("LOAD-01 search: a named file that is missing is a candidate with a sentence; a missing or looping folder a place", "[core][search][LOAD-01]") {
  TestWorld world;
  const fs::path d = world.folder();
  fs::create_symlink("loop", d / "loop");
  SearchInput input;
  input.plugin_files = (d / "gone.json").string() + ":" + (d / "gone").string() + ":" + (d / "loop").string();
  LoadReport report;
  std::vector<Candidate> candidates = find_candidates(input, report);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].refusal.reason == "the manifest " + (d / "gone.json").string() + " does not exist");
  CHECK(place(report, d / "gone")->reason == "does not exist");
  CHECK(place(report, d / "loop")->status == "unreadable");
  CHECK(place(report, d / "loop")->reason == "is a loop of symbolic links");
}

TEST_CASE("search: raised privileges are told, and the setting plugin_path is not read then", "[core][search]") {
  SearchInput input;
  input.raised = true;
  input.system_folders = false;
  LoadReport report;
  CHECK(find_candidates(input, report).empty());
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].remedy.find("/etc/flhal/plugins.d") != std::string::npos);
}
