// tests/support/hostile_files.cc
#include "support/hostile_files.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace flhal::test {
namespace fs = std::filesystem;
namespace {

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

fs::path good_library() { return fs::path(FLHAL_TEST_PLUGIN_DIR) / "libflhal_plugin_ram.so"; }

}  // namespace

fs::path make_hostile(const std::string& kind, const fs::path& folder) {
  std::string library_name = "libflhal_plugin_" + kind + ".so";
  fs::path library = folder / library_name, manifest = folder / (kind + ".json");
  write_all(manifest, "{\"flhal_manifest\": 1, \"id\": \"" + kind + "\", \"library\": \"" + library_name + "\", \"version\": \"1.0\"}\n");

  if (kind == "text_file") {
    write_all(library, "This is a note, not a library.\n");
  } else if (kind == "truncated_file") {
    std::string bytes = read_all(good_library());
    write_all(library, bytes.substr(0, bytes.size() / 3));
  } else if (kind == "other_machine") {
    std::string bytes = read_all(good_library());
    Elf64_Half machine = EM_AARCH64;
    memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    write_all(library, bytes);
  } else if (kind == "unreadable") {
    write_all(library, read_all(good_library()));
    fs::permissions(library, fs::perms::none);
  } else if (kind == "missing_library") {
    // the manifest alone
  } else if (kind == "symlink_loop") {
    fs::create_symlink(library_name, library);
  } else if (kind == "broken_manifest") {
    write_all(library, read_all(good_library()));
    write_all(manifest, "{\"flhal_manifest\": 1,\n \"id\": \"broken_manifest\",\n \"library\": }\n");
  } else {
    fs::path built = fs::path(FLHAL_TEST_HOSTILE_DIR) / library_name;
    if (!fs::exists(built)) throw std::runtime_error("make_hostile: no kind '" + kind + "' (" + built.string() + " is not built)");
    fs::remove(library);  // never written in place: it may be mapped
    fs::copy_file(built, library);
  }
  return manifest;
}

}  // namespace flhal::test
