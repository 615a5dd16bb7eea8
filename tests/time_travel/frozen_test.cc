// tests/time_travel/frozen_test.cc: what scripts/check_frozen_abi.py says of headers that were changed.
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "support/test_world.h"

using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

const std::string kSource = FLHAL_TEST_SOURCE_DIR;

ProcessResult check(TestWorld& world, const fs::path& headers) {
  ProcessResult r = world.run({"python3", kSource + "/scripts/check_frozen_abi.py", headers.string()});
  UNSCOPED_INFO(r.describe());
  return r;
}

// The headers of today with one text replaced.
ProcessResult changed(const std::string& header, const std::string& before, const std::string& after) {
  TestWorld world;
  const fs::path headers = world.folder() / "include";
  fs::copy(kSource + "/include", headers, fs::copy_options::recursive);
  const fs::path file = headers / "flhal" / header;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string content = text.str();
  const size_t at = content.find(before);
  REQUIRE(at != std::string::npos);
  content.replace(at, before.size(), after);
  std::ofstream(file) << content;
  return check(world, headers);
}

}  // namespace

TEST_CASE("frozen headers: the headers of today and those of the next minor serve what was built with 1.0", "[time_travel][abi]") {
  TestWorld world;
  CHECK(check(world, kSource + "/include").ok());
  const fs::path headers = world.folder() / "next";
  ProcessResult next = world.run({"python3", kSource + "/tests/rehearsal/next_minor.py", kSource, headers.string()});
  INFO(next.describe());
  REQUIRE(next.ok());
  fs::copy(kSource + "/include", headers / "include", fs::copy_options::recursive | fs::copy_options::skip_existing);
  CHECK(check(world, headers / "include").ok());
}

TEST_CASE("frozen headers: a change that breaks a binary is told with what was frozen", "[time_travel][abi]") {
  struct Change {
    const char *header, *before, *after, *sentence;
  };
  const Change change = GENERATE(values<Change>({
      {"plugin.h", "uint64_t bytes, align; uint32_t kind", "uint64_t align, bytes; uint32_t kind", "offsetof(struct flhal_p_slab_v1, bytes) was frozen as 16 and is 24"},
      {"plugin.h", "uint64_t bytes, rows, dst_pitch", "double bytes; uint64_t rows, dst_pitch", "struct flhal_p_copy_v1 was frozen with \"uint64_t bytes, rows, dst_pitch, src_pitch\""},
      {"plugin.h", "uint64_t offset; void* host;", "uint64_t offset; void* host; uint64_t more;", "sizeof(struct flhal_p_place) was frozen as 24 and is 32; this struct is frozen"},
      {"device.h", "struct_size, index;", "struct_size;", "offsetof(struct flhal_device_info, index) was frozen as 4 and is gone"},
  }));
  CAPTURE(change.after);
  ProcessResult r = changed(change.header, change.before, change.after);
  CHECK(r.exit_code == 1);
  CHECK_THAT(r.err, Catch::Contains(change.sentence));
}

TEST_CASE("frozen headers: abidiff sees changed functions and types", "[time_travel][abi]") {
  if (std::system("command -v abidiff > /dev/null") != 0) {
    WARN("skipped: abidiff is not installed (Debian: abigail-tools)");
    return;
  }
  struct Change {
    const char *header, *before, *after, *sentence;
  };
  const Change change = GENERATE(values<Change>({
      {"copy.h", "uint64_t bytes, uint32_t flags", "uint64_t bytes, uint64_t flags", "flhal_copy"},
      {"stream.h", "FLHAL_API uint64_t flhal_stream_id(flhal_stream* stream);", "", "1 Removed function"},
      {"scalars.h", "typedef uint32_t flhal_dtype;", "typedef int32_t flhal_dtype;", "flhal_dtype"},
  }));
  CAPTURE(change.after);
  ProcessResult r = changed(change.header, change.before, change.after);
  CHECK(r.exit_code == 1);
  CHECK_THAT(r.err, Catch::Contains(change.sentence));
}
