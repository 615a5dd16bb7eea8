// tests/core/own_libraries_test.cc: which copy of a needed library a plugin really got.
#include "core/discovery_world.h"

using namespace flhal;
using namespace flhal::test;

TEST_CASE("LOAD-04 loader: two plugins that bring the same library: the report says whose copy was taken", "[core][loader][LOAD-04]") {
  // Goal: a mix of two makers' libraries is visible. Method: two plugins in two folders, each with a library of one soname.
  DiscoveryWorld world;
  const std::string one = FLHAL_TEST_BINARY_DIR "/tests/dependent_one.d", two = FLHAL_TEST_BINARY_DIR "/tests/dependent_two.d";
  SearchInput input;
  input.plugin_files = one + ":" + two;
  Discovery* found = discover_here(input, "");
  INFO(found->report.json());
  REQUIRE(names_of(*found) == "dependent_one, dependent_two");
  const CandidateLine& first = line_of(*found, "libflhal_plugin_dependent_one.so");
  const CandidateLine& second = line_of(*found, "libflhal_plugin_dependent_two.so");
  CHECK(first.notes.empty());
  REQUIRE(second.notes.size() == 1);
  CHECK(has(second.notes[0], one + "/libflhal_test_dependency.so was taken, which the process had already"));
  CHECK(has(second.notes[0], two + "/libflhal_test_dependency.so is not used"));
}
