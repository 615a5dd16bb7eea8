// src/core/manifest.h: the JSON file that stands for a plugin.
//
//   {
//     "flhal_manifest": 1,                        needed; the version of this format
//     "id": "org.example.chip",                   needed; letters, digits, _ - .   the same that the library answers
//     "library": "libflhal_plugin_chip.so",       needed; relative to the manifest's folder, or absolute
//     "abi": "1.0",                               newest plugin ABI it was built for; checked before the library is opened
//     "abi_oldest": "1.0",                        oldest it works with; default: the library says it
//     "version": "0.3.1",                         shown in reports
//     "probe_environment": ["ACME_*"],            names (a * may end one) of variables that change what a probe answers
//     "probe_files": ["/proc/driver/acme/version"] files, or folders, whose change means: ask the driver again
//   }
// "manifest_version" is read as another name of "flhal_manifest". Unknown fields are ignored: a newer package may have more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/abi_range.h"
#include "core/refusal.h"

namespace flhal {

struct Manifest {
  std::string path, id, library, version;
  std::optional<AbiVersion> abi, abi_oldest;
  std::vector<std::string> probe_environment, probe_files;
};

Refusal read_manifest(const std::string& path, Manifest* out);
Refusal parse_manifest(const std::string& path, const std::string& text, Manifest* out);
bool valid_plugin_id(std::string_view id);
// The manifest's own statement about the ABI, against what this core speaks.
Refusal check_manifest_abi(const Manifest& manifest);

}  // namespace flhal
