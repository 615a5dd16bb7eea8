// tests/core/privileges_test.cc: an ordinary user, and a program with raised privileges. Both need root to be set up.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/discovery_world.h"

using namespace flhal;
using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

constexpr unsigned kUser = 12345;

bool root() {
  if (geteuid() == 0) return true;
  WARN("skipped: only root can make files of another user");
  return false;
}

}  // namespace

TEST_CASE("LOAD-01 loader: a library this user may not read has a sentence with the command", "[core][loader][LOAD-01]") {
  if (!root()) return;
  TestWorld world;
  world.add_plugin("ram");
  world.add_hostile("unreadable");
  fs::permissions(world.write("secret.json", "{}"), fs::perms::none);
  world.run_as(kUser);
  ProcessResult result = world.run({helper("core_one"), "count", "load"});
  INFO(result.describe());
  CHECK(has(result.out, "count 1\n"));
  const std::string library = (world.plugin_folder() / "libflhal_plugin_unreadable.so").string();
  CHECK(has(result.out, "the library " + library + " may not be read by user 12345"));
  CHECK(has(result.out, "run: chmod a+r " + library));
  CHECK(has(result.out, "the manifest " + (world.plugin_folder() / "secret.json").string() + " may not be read by user 12345"));
}

TEST_CASE("cache: a cache folder of another owner is not trusted by an ordinary user", "[core][cache]") {
  if (!root()) return;
  TestWorld world;
  world.add_plugin("ram");
  world.run_as(kUser);
  fs::create_directories(world.folder() / "cache/flhal");     // root's
  ProcessResult result = world.run({helper("core_one"), "count", "load"});
  INFO(result.describe());
  CHECK(has(result.out, "count 1\n"));
  CHECK(has(result.out, "cache/flhal belongs to user 0 and this process runs as user 12345"));
}

TEST_CASE("search: a program with raised privileges ignores environment and home", "[core][search]") {
  if (!root()) return;
  TestWorld world;
  world.add_plugin("ram");
  struct statvfs mounted{};
  if (statvfs(world.folder().c_str(), &mounted) == 0 && (mounted.f_flag & ST_NOSUID)) {
    WARN("skipped: " << world.folder() << " is mounted nosuid");
    return;
  }
  // A copy of core_one that belongs to root and changes the user when an ordinary one starts it.
  const fs::path program = world.folder() / "core_one";
  fs::copy_file(helper("core_one"), program);
  chmod(program.c_str(), 04755);
  world.run_as(kUser);
  world.set("FLHAL_LOG_LEVEL", "nonsense");                    // not even read
  ProcessResult result = world.run({program.string(), "init", "count", "load"});
  INFO(result.describe());
  CHECK(has(result.out, "init 0 \ncount 0 "));
  CHECK(has(result.out, "this process runs with raised privileges"));
  CHECK_FALSE(has(result.out, world.plugin_folder().string()));
}
