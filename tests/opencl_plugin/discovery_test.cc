// tests/opencl_plugin/discovery_test.cc: drivers that are missing, broken or hostile; each time another chip works.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "loading/scan.h"

using namespace flhal::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

struct Drivers : TestWorld {
  fs::path vendors = folder() / "vendors";
  Drivers() {
    add_plugin("ram");
    add_plugin("opencl");
    unset("POCL_DEVICES");
    unset("OCL_ICD_VENDORS");
  }
  void icd(const std::string& name, const std::string& text) {
    fs::create_directories(vendors);
    std::ofstream(vendors / name) << text << "\n";
    set("OCL_ICD_VENDORS", vendors.string());
  }
};

std::string good_driver() {
  for (const auto& entry : fs::directory_iterator("/etc/OpenCL/vendors")) {
    if (entry.path().filename() != "pocl.icd") continue;
    std::ifstream file(entry.path());
    std::string library;
    std::getline(file, library);
    return library;
  }
  FAIL("/etc/OpenCL/vendors/pocl.icd is not there; install pocl-opencl-icd");
  return "";
}

ReportLine refused(Drivers& world) {
  Scan s = scan(world);
  INFO(s.process.describe());
  CHECK(s.process.exit_code == 0);
  CHECK(s.devices == std::vector<std::string>{"ram"});
  CHECK(s.works("ram"));
  const ReportLine* line = s.plugin("opencl.json");
  REQUIRE(line != nullptr);
  CHECK(line->status == "refused");
  CHECK(line->reason.find('\n') == std::string::npos);
  return *line;
}

}  // namespace

TEST_CASE("discovery: PoCL is found, works, and is told from the cache the second time", "[opencl][loading]") {
  Drivers world;
  for (const char* asked : {"in a child", "from the cache"}) {
    Scan s = scan(world);
    INFO(s.process.describe());
    CHECK(s.devices == std::vector<std::string>{"opencl", "ram"});
    CHECK((s.works("opencl") && s.works("ram")));
    CHECK_THAT(s.process.out, Contains(asked));
  }
  world.set("FLHAL_VISIBLE_DEVICES", "ram,opencl");
  CHECK(scan(world).devices == std::vector<std::string>{"ram", "opencl"});
  world.set("FLHAL_VISIBLE_DEVICES", "opencl/opencl");
  CHECK(scan(world).devices == std::vector<std::string>{"opencl"});
  world.unset("FLHAL_VISIBLE_DEVICES");
  world.set("POCL_DEVICES", "basic basic");           // another answer: the cache must not give the old one
  CHECK(scan(world).devices == std::vector<std::string>{"opencl", "opencl:1", "ram"});
}

TEST_CASE("LOAD a folder of drivers that does not exist, or names nothing that opens, is a sentence", "[opencl][loading]") {
  Drivers world;
  world.set("OCL_ICD_VENDORS", "/nowhere/vendors");
  ReportLine line = refused(world);
  CHECK_THAT(line.reason, Contains("found no platform in /nowhere/vendors (which does not exist)") && Contains("pocl-opencl-icd"));
  world.icd("broken.icd", "/nowhere/libdriver.so.1");
  line = refused(world);
  CHECK_THAT(line.reason, Contains("broken.icd names the library \"/nowhere/libdriver.so.1\", which cannot be opened"));
  world.icd("broken.icd", "");
  CHECK_THAT(refused(world).reason, Contains("broken.icd names no library"));
}

TEST_CASE("LOAD a broken driver beside a good one is a note, and the good one works", "[opencl][loading]") {
  Drivers world;
  world.icd("good.icd", good_driver());
  world.icd("broken.icd", "/nowhere/libdriver.so.1");
  for (int again = 0; again < 2; ++again) {           // the note is in the cache too
    Scan s = scan(world);
    INFO(s.process.describe());
    CHECK(s.works("opencl"));
    CHECK_THAT(s.process.out, Contains("broken.icd names the library") && Contains("remove the file"));
  }
}

TEST_CASE("LOAD a driver that ends the process ends a child, and the report says where", "[opencl][loading]") {
  Drivers world;
  world.icd("crash.icd", FLHAL_TEST_CRASHING_ICD);
  ReportLine line = refused(world);
  CHECK_THAT(line.reason, Contains("crashed in init"));
  CHECK(!line.remedy.empty());
}

TEST_CASE("LOAD a machine without the ICD loader, and settings that are none", "[opencl][loading]") {
  Drivers world;
  world.set("FLHAL_OPENCL_LOADER", "/nowhere/libOpenCL.so.1");
  CHECK_THAT(refused(world).reason, Contains("the OpenCL loader /nowhere/libOpenCL.so.1 cannot be opened") && Contains("ocl-icd-libopencl1"));
  world.set("FLHAL_OPENCL_LOADER", "libm.so.6");
  CHECK_THAT(refused(world).reason, Contains("older than OpenCL 1.2"));
  world.unset("FLHAL_OPENCL_LOADER");
  world.set("FLHAL_OPENCL_MEMORY", "plenty");
  CHECK_THAT(refused(world).reason, Contains("\"plenty\"; it takes auto, fine, coarse or buffer"));
}
