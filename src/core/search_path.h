// src/core/search_path.h: where plugins are looked for, in which order. The one resolver of C, command line and Python.
//
//   1. FLHAL_PLUGIN_FILES, else TORCH_FL_PLUGIN_FILES: a colon list of folders, manifests or libraries; replaces everything below
//   2. FLHAL_ADD_PLUGIN_FILES, else TORCH_FL_ADD_PLUGIN_FILES: the same kind of list
//   3. FLHAL_PLUGIN_PATH, else TORCH_FL_PLUGIN_PATH (the setting plugin_path)
//   4. what the program named with flhal_plugin_add
//   5. relative to libflhal's own file in <d>: <d>/../../flhal_plugins.d (site-packages, for torch_fl/lib), <d>/flhal_plugins.d
//      (an installed prefix), <d>/../share/flhal/plugins.d, <d>/../../share/flhal/plugins.d (lib/<machine>)
//   6. /etc/flhal/plugins.d, /usr/local/share/flhal/plugins.d, /usr/share/flhal/plugins.d, ~/.local/share/flhal/plugins.d
//
// A folder gives its *.json manifests and those libflhal_plugin_*.so that none of its manifests names, sorted by name:
// the order of readdir decides nothing. The environment and the home folder are ignored when privileges were raised.
#pragma once

#include <string>
#include <vector>

#include "core/load_report.h"
#include "core/manifest.h"

namespace flhal {

struct Candidate {
  std::string path;              // what was found
  std::string origin;            // who named it
  bool is_manifest = false;
  Manifest manifest;             // read already when is_manifest
  Refusal refusal;               // the manifest was malformed
  std::string library() const { return is_manifest ? manifest.library : path; }
};

struct SearchInput {             // everything the result depends on, so that tests need no environment
  std::string plugin_files, add_plugin_files, plugin_path, plugin_path_source;
  std::string plugin_files_source = "FLHAL_PLUGIN_FILES", add_plugin_files_source = "FLHAL_ADD_PLUGIN_FILES";
  std::vector<std::string> added;
  std::string own_folder;        // of libflhal; "" = unknown
  std::string home;
  bool raised = false;           // privileges were raised
  bool system_folders = true;
};
SearchInput search_input(const std::vector<std::string>& added);

// Fills report.places; candidates in order, each file once.
std::vector<Candidate> find_candidates(const SearchInput& input, LoadReport& report);

// The folder of the file that holds this code (libflhal, or a program that has it inside), symbolic links resolved.
std::string own_folder();

}  // namespace flhal
