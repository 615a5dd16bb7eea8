// tests/install/prerequisites_test.cc: the two commands on a machine that lacks packages and gives no way to install them.
#include <catch2/catch.hpp>
#include <unistd.h>

#include "support/test_world.h"

using namespace flhal::test;
namespace fs = std::filesystem;

TEST_CASE("prerequisites: without root and sudo, make names the one command that installs what is missing", "[install][prerequisites]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can become a user without sudo");
    return;
  }
  TestWorld world;
  fs::path clone = world.folder() / "clone";
  fs::create_directories(clone / "scripts");
  for (const char* file : {"Makefile", "scripts/prerequisites.sh"}) fs::copy(fs::path(FLHAL_TEST_SOURCE_DIR) / file, clone / file);
  world.run_as(12345);
  std::string target = GENERATE("demo", "test");
  CAPTURE(target);
  // Everything is installed here, so a package that cannot be stands for one that is missing.
  ProcessResult r = world.run({"make", "-C", clone.string(), target, "PACKAGES=flhal-no-such-package"});
  INFO(r.describe());
  CHECK_FALSE(r.ok());
  CHECK_THAT(r.err, Catch::Contains("sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends flhal-no-such-package'"));
  CHECK_THAT(r.err, Catch::Contains("neither root nor sudo"));
  CHECK_FALSE(fs::exists(clone / "build"));   // it stopped before anything was built
}
