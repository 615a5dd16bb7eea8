// src/core/search_path.cc: places, in order, and what lies in them.
#include "core/search_path.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/config.h"
#include "core/config_values.h"

namespace flhal {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string path, origin;
};

std::string normal(const std::string& path) {
  std::error_code ignored;
  fs::path absolute = fs::absolute(path, ignored);
  std::string text = (ignored ? fs::path(path) : absolute).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

void split(const std::string& list, const std::string& origin, std::vector<Place>* out) {
  size_t start = 0;
  while (start <= list.size()) {
    size_t end = std::min(list.find(':', start), list.size());
    std::string_view part = trimmed(std::string_view(list).substr(start, end - start));
    if (!part.empty()) out->push_back({normal(std::string(part)), origin});
    start = end + 1;
  }
}

std::vector<Place> places_of(const SearchInput& input, LoadReport& report) {
  std::vector<Place> places;
  if (!input.plugin_files.empty()) {
    split(input.plugin_files, input.plugin_files_source, &places);
    std::vector<Place> ignored;
    split(input.add_plugin_files, input.add_plugin_files_source, &ignored);
    split(input.plugin_path, input.plugin_path_source, &ignored);
    for (const std::string& path : input.added) ignored.push_back({normal(path), "flhal_plugin_add"});
    for (const Place& place : ignored)
      report.places.push_back({place.path, place.origin, "ignored", input.plugin_files_source + " replaces the search", 0});
    return places;
  }
  split(input.add_plugin_files, input.add_plugin_files_source, &places);
  split(input.plugin_path, input.plugin_path_source, &places);
  for (const std::string& path : input.added) places.push_back({normal(path), "flhal_plugin_add"});
  if (!input.own_folder.empty())
    for (const char* relative : {"../../flhal_plugins.d", "flhal_plugins.d", "../share/flhal/plugins.d", "../../share/flhal/plugins.d"})
      places.push_back({normal(input.own_folder + "/" + relative), "beside libflhal"});
  if (input.system_folders) {
    for (const char* path : {"/etc/flhal/plugins.d", "/usr/local/share/flhal/plugins.d", "/usr/share/flhal/plugins.d"})
      places.push_back({path, "system"});
    if (!input.home.empty()) places.push_back({normal(input.home + "/.local/share/flhal/plugins.d"), "home"});
  }
  return places;
}

std::string open_error(int error) {
  if (error == ENOENT || error == ENOTDIR) return "does not exist";
  if (error == EACCES) return "may not be read by this user";
  if (error == ELOOP) return "is a loop of symbolic links";
  return std::string("cannot be read: ") + strerrordesc_np(error);
}

Candidate manifest_candidate(const std::string& path, const std::string& origin) {
  Candidate candidate{path, origin, true, {}, {}};
  candidate.refusal = read_manifest(path, &candidate.manifest);
  return candidate;
}

bool is_plugin_library(const std::string& name) { return name.rfind("libflhal_plugin_", 0) == 0 && name.size() > 19 && name.ends_with(".so"); }

void look_into(const Place& place, PlaceLine& line, std::vector<Candidate>* out) {
  DIR* dir = opendir(place.path.c_str());
  if (dir == nullptr) {
    line.status = errno == ENOENT || errno == ENOTDIR ? "missing" : "unreadable";
    line.reason = open_error(errno);
    return;
  }
  std::vector<std::string> manifests, libraries;
  uint32_t other_libraries = 0;
  while (dirent* entry = readdir(dir)) {
    std::string name = entry->d_name;
    if (name.empty() || name[0] == '.') continue;
    if (name.ends_with(".json")) {
      manifests.push_back(name);
    } else if (is_plugin_library(name)) {
      libraries.push_back(name);
    } else if (name.ends_with(".so")) {
      ++other_libraries;
    }
  }
  closedir(dir);
  std::sort(manifests.begin(), manifests.end());
  std::sort(libraries.begin(), libraries.end());
  std::set<std::string> named;
  for (const std::string& name : manifests) {
    out->push_back(manifest_candidate(place.path + "/" + name, place.origin));
    if (!out->back().refusal) named.insert(normal(out->back().manifest.library));
  }
  for (const std::string& name : libraries)
    if (!named.count(normal(place.path + "/" + name))) out->push_back({place.path + "/" + name, place.origin, false, {}, {}});
  line.status = "searched";
  line.found = 0;
  if (other_libraries != 0 && manifests.empty() && libraries.empty())
    line.reason = fmt::format("{} libraries there are neither named by a manifest nor called libflhal_plugin_<id>.so; name the library itself to load it",
                              other_libraries);
}

}  // namespace

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return "";
  std::string path = info.dli_fname;
  // For code in the program itself dladdr gives argv[0], which may be relative to nothing.
  if (path.find('/') == std::string::npos || path[0] != '/') {
    char* real = realpath("/proc/self/exe", nullptr);
    if (real != nullptr && fs::path(real).filename() == fs::path(path).filename()) path = real;
    free(real);
  }
  char* real = realpath(path.c_str(), nullptr);
  if (real != nullptr) path = real;
  free(real);
  return fs::path(path).parent_path().string();
}

SearchInput search_input(const std::vector<std::string>& added) {
  SearchInput input;
  auto get = [](const char* name) {
    const char* value = secure_getenv(name);
    return std::string(value ? trimmed(value) : std::string_view());
  };
  auto under_both_names = [&](const char* name, std::string* value, std::string* source) {
    for (const char* prefix : {"FLHAL_", "TORCH_FL_"}) {
      *source = std::string(prefix) + name;
      *value = get(source->c_str());
      if (!value->empty()) return;
    }
  };
  under_both_names("PLUGIN_FILES", &input.plugin_files, &input.plugin_files_source);
  under_both_names("ADD_PLUGIN_FILES", &input.add_plugin_files, &input.add_plugin_files_source);
  input.plugin_path = config_text("plugin_path");
  input.plugin_path_source = config_source("plugin_path");
  input.added = added;
  input.own_folder = own_folder();
  input.home = get("HOME");
  input.raised = getauxval(AT_SECURE) != 0;
  return input;
}

std::vector<Candidate> find_candidates(const SearchInput& input, LoadReport& report) {
  if (input.raised)
    report.notes.push_back({"note", "search", "this process runs with raised privileges, so environment and home folder are not searched for plugins",
                            "install plugins for the whole system, in /etc/flhal/plugins.d"});
  std::vector<Candidate> found;
  std::set<std::string> seen_places, seen_files;
  for (const Place& place : places_of(input, report)) {
    if (!seen_places.insert(place.path).second) continue;
    PlaceLine line{place.path, place.origin, "searched", "", 0};
    std::vector<Candidate> here;
    struct stat info{};
    if (stat(place.path.c_str(), &info) != 0) {
      const bool named_file = place.path.ends_with(".json") || place.path.ends_with(".so");
      line.status = errno == ENOENT || errno == ENOTDIR ? "missing" : "unreadable";
      line.reason = open_error(errno);
      // A named file that is not there is a candidate with a line of its own; a folder that is not there is only a place.
      if (named_file) here.push_back(place.path.ends_with(".json") ? manifest_candidate(place.path, place.origin) : Candidate{place.path, place.origin, false, {}, {}});
    } else if (S_ISDIR(info.st_mode)) {
      look_into(place, line, &here);
    } else {
      here.push_back(place.path.ends_with(".json") ? manifest_candidate(place.path, place.origin) : Candidate{place.path, place.origin, false, {}, {}});
    }
    for (Candidate& candidate : here) {
      if (!seen_files.insert(candidate.path).second) continue;
      ++line.found;
      found.push_back(std::move(candidate));
    }
    report.places.push_back(std::move(line));
  }
  return found;
}

}  // namespace flhal
