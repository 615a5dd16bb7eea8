// tests/support/test_world.cc
#include "support/test_world.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "support/hostile_files.h"

extern char** environ;

namespace flhal::test {
namespace fs = std::filesystem;

TestWorld::TestWorld() {
  std::string pattern = (fs::temp_directory_path() / "flhal-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("TestWorld: no folder in " + pattern);
  folder_ = pattern;
  for (const char* name : {"flhal_plugins.d", "home", "cache", "config", "tmp"}) fs::create_directories(folder_ / name);
  // Sanitizer settings, PATH and coverage names pass through; anything of ours does not.
  for (char** e = environ; *e != nullptr; ++e) {
    std::string text = *e, name = text.substr(0, text.find('='));
    if (name.rfind("FLHAL_", 0) == 0 || name.rfind("TORCH_FL_", 0) == 0 || name.rfind("XDG_", 0) == 0) continue;
    environment_[name] = text.substr(name.size() + 1);
  }
  set("HOME", (folder_ / "home").string());
  set("XDG_CACHE_HOME", (folder_ / "cache").string());
  set("XDG_CONFIG_HOME", (folder_ / "config").string());
  set("TMPDIR", (folder_ / "tmp").string());
}

TestWorld::~TestWorld() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

fs::path TestWorld::add_plugin(const std::string& id) {
  fs::path from = FLHAL_TEST_PLUGIN_DIR;
  std::string library = "libflhal_plugin_" + id + ".so", manifest = id + ".json";
  if (!fs::exists(from / library)) throw std::runtime_error("TestWorld: " + (from / library).string() + " is not built");
  fs::remove(plugin_folder() / library);  // never written in place: it may be mapped
  fs::copy_file(from / library, plugin_folder() / library);
  fs::copy_file(from / manifest, plugin_folder() / manifest, fs::copy_options::overwrite_existing);
  return plugin_folder() / manifest;
}

fs::path TestWorld::add_hostile(const std::string& kind) { return make_hostile(kind, plugin_folder()); }

fs::path TestWorld::write(const std::string& name, const std::string& text) {
  fs::path path = plugin_folder() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

ProcessResult TestWorld::run(const std::vector<std::string>& argv, double seconds_max) {
  Command command;
  command.argv = argv;
  command.environment = environment_;
  if (!command.environment.count("TORCH_FL_PLUGIN_PATH") && !command.environment.count("FLHAL_PLUGIN_FILES"))
    command.environment["TORCH_FL_PLUGIN_PATH"] = plugin_folder().string();
  command.folder = folder_.string();
  command.seconds_max = seconds_max;
  command.user = user_;
  if (user_) {   // mkdtemp made the folder for root alone
    chmod(folder_.c_str(), 0755);
    for (const char* name : {"home", "cache", "config", "tmp"})
      if (chown((folder_ / name).c_str(), *user_, *user_) != 0) throw std::runtime_error("TestWorld: run_as needs root");
  }
  return run_process(command);
}

int TestWorld::enter(const std::string& mock_script) {
  std::vector<std::string> ours;
  for (char** e = environ; *e != nullptr; ++e) {
    std::string text = *e;
    if (text.rfind("FLHAL_TEST_", 0) == 0) continue;   // how much to test, not how flhal behaves
    if (text.rfind("FLHAL_", 0) == 0 || text.rfind("TORCH_FL_", 0) == 0) ours.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : ours) unsetenv(name.c_str());
  setenv("FLHAL_PLUGIN_FILES", FLHAL_TEST_PLUGIN_DIR "/ram.json:" FLHAL_TEST_PLUGIN_DIR "/mock.json", 1);
  // The same tests once more under another level and another kind of chip: see the ctests named *_level2.
  std::string script = mock_script;
  if (const char* more = getenv("FLHAL_TEST_MOCK")) script += (script.empty() ? "" : ",") + std::string(more);
  if (const char* level = getenv("FLHAL_TEST_ASYNC_LEVEL")) setenv("FLHAL_ASYNC_LEVEL", level, 1);
  if (const char* layers = getenv("FLHAL_TEST_LAYERS")) setenv("FLHAL_LAYERS", layers, 1);
  if (!script.empty()) setenv("FLHAL_MOCK", script.c_str(), 1);
  return 0;
}

std::string helper(const std::string& name) { return FLHAL_TEST_HELPER_DIR "/" + name; }

}  // namespace flhal::test
