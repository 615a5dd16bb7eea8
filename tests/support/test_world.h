// tests/support/test_world.h: a small world for one test: a folder, plugins with manifests, an environment, a mock script.
//
// The device list of a process freezes at its first count, so a test of loading runs a program in the world:
//   TestWorld world;
//   world.add_plugin("ram");
//   world.add_hostile("throws_in_init");
//   ProcessResult r = world.run({helper("scan_one")});
// Tests of one program that all want the same chips enter one world for their whole process instead:
//   static const int entered = TestWorld::enter("chips=ab");       // before main; FLHAL_PLUGIN_FILES names ram and mock
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/fresh_process.h"

namespace flhal::test {

class TestWorld {
 public:
  TestWorld();                    // an empty folder, an environment without any FLHAL_* or TORCH_FL_* name
  ~TestWorld();                   // removes the folder
  TestWorld(const TestWorld&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path plugin_folder() const { return folder_ / "flhal_plugins.d"; }

  // Copies a built plugin ("ram", "mock", "host") with its manifest into the plugin folder. Returns the manifest's path.
  std::filesystem::path add_plugin(const std::string& id);
  // Copies one of the hostile kit and writes a manifest for it; "text_file", "other_machine" etc. are made here.
  std::filesystem::path add_hostile(const std::string& kind);
  // Writes a file into the plugin folder, e.g. a manifest of one's own.
  std::filesystem::path write(const std::string& name, const std::string& text);

  void set(const std::string& name, const std::string& value) { environment_[name] = value; }
  void unset(const std::string& name) { environment_.erase(name); }
  void mock(const std::string& script) { set("FLHAL_MOCK", script); }
  void run_as(unsigned user) { user_ = user; }            // root only: children drop to this user; opens the folder to it
  const std::map<std::string, std::string>& environment() const { return environment_; }

  // Runs a program in the world. Sets TORCH_FL_PLUGIN_PATH to the plugin folder unless a test has set it.
  ProcessResult run(const std::vector<std::string>& argv, double seconds_max = 60);

  // Puts ram and mock before this very process, for its whole life. Call it before the first use of flhal.
  static int enter(const std::string& mock_script = "");

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  std::optional<unsigned> user_;
};

// Path of a helper program that the build made beside the tests, e.g. helper("scan_one").
std::string helper(const std::string& name);

}  // namespace flhal::test
