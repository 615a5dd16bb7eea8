// tests/opencl_plugin/failure_test.cc: what drivers answer when something is wrong, and what becomes of it.
//
// Method: this binary again in a fresh process, over a loader that fails on request (failing_loader.c).
#include <cstdlib>

#include "opencl/code.h"
#include "support/fresh_process.h"
#include "support/test_world.h"
#include "world.h"

using namespace flhal;
using namespace flhal::test;
using Catch::Contains;

namespace {

void run_child(const char* name, const char* memory) {
  TestWorld world;
  world.set("FLHAL_OPENCL_LOADER", FLHAL_TEST_FAILING_LOADER);
  world.set("FLHAL_OPENCL_MEMORY", memory);
  ProcessResult r = world.run({"/proc/self/exe", name});
  INFO(memory << ": " << r.describe());
  CHECK(r.exit_code == 0);
  CHECK_THAT(r.out, Contains("All tests passed"));
}

const char kAdd[] = "__kernel void add(__global int* x, int by) { x[get_global_id(0)] += by; }";

struct Failing {
  std::string name;
  Failing(const char* function, int code) : name(std::string("FAIL_") + function) { setenv(name.c_str(), std::to_string(code).c_str(), 1); }
  ~Failing() { unsetenv(name.c_str()); }
};

}  // namespace

TEST_CASE("failure: codes of OpenCL are failures of ours", "[opencl][failure]") {
  using opencl::status_of;
  CHECK(status_of(CL_SUCCESS) == FLHAL_OK);
  CHECK(status_of(CL_DEVICE_NOT_AVAILABLE) == FLHAL_E_DEVICE_LOST);
  CHECK(status_of(CL_INVALID_COMMAND_QUEUE) == FLHAL_E_DEVICE_LOST);
  CHECK(status_of(CL_INVALID_CONTEXT) == FLHAL_E_DEVICE_LOST);
  CHECK(status_of(CL_OUT_OF_RESOURCES) == FLHAL_E_OP_FAILED);
  CHECK(status_of(CL_MEM_OBJECT_ALLOCATION_FAILURE) == FLHAL_E_OUT_OF_MEMORY);
  CHECK(status_of(CL_OUT_OF_HOST_MEMORY) == FLHAL_E_HOST_MEMORY);
  CHECK(status_of(CL_BUILD_PROGRAM_FAILURE) == FLHAL_E_BUILD);
  CHECK(status_of(CL_INVALID_KERNEL_NAME) == FLHAL_E_NOT_FOUND);
  CHECK(status_of(CL_INVALID_WORK_GROUP_SIZE) == FLHAL_E_INVALID);
  CHECK(status_of(-9999) == FLHAL_E_VENDOR_LAST - 9999);
  CHECK(opencl::code_name(-5) == "CL_OUT_OF_RESOURCES (-5)");
  CHECK(opencl::code_name(-9999) == "the code -9999");
}

TEST_CASE("failure: lost chips, failed work and full chips", "[opencl][failure]") {
  for (const char* memory : {"fine", "buffer"})
    for (const char* child : {"child: lost", "child: work", "child: full"}) run_child(child, memory);
}

TEST_CASE("child: lost", "[.child][child]") {
  Device* c = chip();
  flhal_stream *s = new_stream(c), *other = new_stream(chip(1));
  flhal_function *add = function(build(c, kAdd), "add"), *add_other = function(build(chip(1), kAdd), "add");
  flhal_addr x = allocate(s, 256), y = allocate(other, 256);
  int by = 1;
  {
    Failing now("clEnqueueNDRangeKernel", CL_DEVICE_NOT_AVAILABLE);
    CHECK(launch(s, add, 1, 64, {memory(x), value(by)}) == FLHAL_E_DEVICE_LOST);
    CHECK_THAT(last_error_text(), Contains("CL_DEVICE_NOT_AVAILABLE (-2)") && Contains("clEnqueueNDRangeKernel"));
  }
  CHECK(c->lost());
  CHECK(launch(s, add, 1, 64, {memory(x), value(by)}) == FLHAL_E_DEVICE_LOST);
  CHECK_THAT(last_error_text(), Contains("is lost"));
  const int zero = 0;
  REQUIRE_FINE(flhal_fill(other, y, 256, &zero, 4));   // the other chip lives
  REQUIRE_FINE(launch(other, add_other, 1, 64, {memory(y), value(by)}));
  CHECK((download(other, y, 4) == std::vector<uint8_t>{1, 0, 0, 0}));
  flhal_free(x);                                       // legal, without effect
  REQUIRE_FINE(flhal_device_reset_error(device_of(c)));
  flhal_stream* fresh = new_stream(c);
  add = function(build(c, kAdd), "add");
  x = allocate(fresh, 256);
  REQUIRE_FINE(launch(fresh, add, 1, 64, {memory(x), value(by)}));
  REQUIRE_FINE(flhal_stream_synchronize(fresh));
  REQUIRE_FINE(launch(fresh, add, 1, 64, {memory(x), value(by)}));
  {
    // A queue whose work ended well is not asked again; this one's did not, and finishing it tells why.
    Failing work("event", CL_OUT_OF_RESOURCES), now("clFinish", CL_INVALID_COMMAND_QUEUE);
    CHECK(flhal_stream_synchronize(fresh) == FLHAL_E_DEVICE_LOST);
    CHECK_THAT(last_error_text(), Contains("CL_INVALID_COMMAND_QUEUE (-36)"));
  }
}

TEST_CASE("child: work", "[.child][child]") {
  Device* c = chip();
  flhal_stream *s = new_stream(c), *well = new_stream(c);
  flhal_function* add = function(build(c, kAdd), "add");
  flhal_addr x = allocate(s, 256);
  int by = 1;
  {
    Failing now("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
    CHECK(launch(s, add, 1, 64, {memory(x), value(by)}) == FLHAL_E_OP_FAILED);
    CHECK_THAT(last_error_text(), Contains("CL_OUT_OF_RESOURCES (-5)") && Contains("groups of 64"));
  }
  CHECK(!c->lost());
  CHECK(launch(s, add, 1, 64, {memory(x), value(by)}) == FLHAL_E_OP_FAILED);   // the stream remembers
  REQUIRE_FINE(launch(well, add, 1, 64, {memory(x), value(by)}));
  REQUIRE_FINE(flhal_stream_clear_error(s));
  REQUIRE_FINE(launch(s, add, 1, 64, {memory(x), value(by)}));
  {
    Failing now("event", CL_OUT_OF_RESOURCES);         // it was accepted, and ended abnormally
    CHECK(flhal_stream_synchronize(s) == FLHAL_E_OP_FAILED);
    CHECK_THAT(last_error_text(), Contains("failed after it was queued") && Contains("CL_OUT_OF_RESOURCES (-5)"));
  }
  REQUIRE_FINE(flhal_stream_clear_error(s));
  REQUIRE_FINE(launch(s, add, 1, 64, {memory(x), value(by)}));
  REQUIRE_FINE(flhal_stream_synchronize(s));
  {
    Failing now("clEnqueueNDRangeKernel", -9999);      // a driver's own code
    CHECK(launch(s, add, 1, 64, {memory(x), value(by)}) == FLHAL_E_VENDOR_LAST - 9999);
    CHECK_THAT(last_error_text(), Contains("the code -9999"));
  }
}

TEST_CASE("child: full", "[.child][child]") {
  Device* c = chip();
  flhal_stream* s = new_stream(c);
  flhal_addr x = 0;
  {
    Failing now("alloc", CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(flhal_alloc(s, 1 << 20, &x) == FLHAL_E_OUT_OF_MEMORY);
    CHECK_THAT(last_error_text(), Contains("out of memory on opencl"));
  }
  REQUIRE_FINE(flhal_alloc(s, 1 << 20, &x));           // nothing was lost on the way
  flhal_free(x);
}
