// tests/support/hostile_files.h: plugins that are wrong in one way each, as files in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace flhal::test {

// Makes a hostile plugin with its manifest in `folder`. Kinds: those of tests/support/hostile.c (built as libraries), and
// files made here: text_file, truncated_file, other_machine, unreadable, missing_library, symlink_loop, broken_manifest,
// missing_dependency. Returns what core will meet first: the manifest.
std::filesystem::path make_hostile(const std::string& kind, const std::filesystem::path& folder);

}  // namespace flhal::test
