// tests/layers/trace_test.cc: what the layer trace writes, and that flhal-replay makes the same calls again.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dispatch/call.h"
#include "layers/layers_world.h"

#include <flhal/ops.h>

using namespace flhal;
using namespace flhal::test;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string plugin_file(const std::string& id) { return FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_" + id + ".so"; }

// A program in a process of its own: layers from the start, so that its trace is complete.
ProcessResult record(TestWorld& world, const std::string& plugin, const std::string& trace, bool payload, const std::string& faults = "") {
  world.set("FLHAL_PLUGIN_FILES", plugin_file(plugin));
  world.set("FLHAL_LAYERS", faults.empty() ? "trace" : "trace,fault");
  world.set("FLHAL_FAULTS", faults);
  world.set("FLHAL_TRACE_FILE", trace);
  world.set("FLHAL_TRACE_PAYLOAD", payload ? "on" : "off");
  ProcessResult r = world.run({helper("layers_program")});
  for (const char* name : {"FLHAL_LAYERS", "FLHAL_FAULTS", "FLHAL_TRACE_FILE", "FLHAL_TRACE_PAYLOAD"}) world.unset(name);
  return r;
}

}  // namespace

TEST_CASE("trace: writes Chrome's events with every call, its time, thread, handles and answer", "[layers]") {
  TestWorld world;
  const std::string trace = (world.folder() / "trace.json").string();
  ProcessResult r = record(world, "mock", trace, true);
  INFO(r.describe());
  REQUIRE(r.ok());
  const std::string text = read(trace);
  std::unique_ptr<cJSON, void (*)(cJSON*)> events(cJSON_Parse(text.c_str()), cJSON_Delete);
  REQUIRE(cJSON_IsArray(events.get()));
  CHECK(cJSON_GetArraySize(events.get()) > 20);
  bool add = false, upload = false, opened = false;
  const cJSON* event = nullptr;
  cJSON_ArrayForEach(event, events.get()) {
    const std::string name = cJSON_GetObjectItem(event, "name")->valuestring;
    const cJSON* args = cJSON_GetObjectItem(event, "args");
    CHECK(std::string(cJSON_GetObjectItem(event, "ph")->valuestring) == "X");
    CHECK(cJSON_GetObjectItem(event, "dur")->valuedouble >= 0);
    CHECK(cJSON_GetObjectItem(event, "tid")->valuedouble > 0);
    CHECK(LayersReport::text(args, "plugin") == "mock");
    if (name == "plan_run add") add = LayersReport::text(args, "answer") == "OK";
    if (name == "device_open") opened = cJSON_GetObjectItem(cJSON_GetObjectItem(args, "arguments"), "out")->valuedouble > 0;
    if (name == "copy" && LayersReport::text(args, "payload").rfind("0000803f", 0) == 0) upload = true;   // 1.0f
  }
  CHECK(add);
  CHECK(upload);
  CHECK(opened);
}

TEST_CASE("trace: a file that ends in .txt has a line per call", "[layers]") {
  TestWorld world;
  const std::string trace = (world.folder() / "trace.txt").string();
  ProcessResult r = record(world, "ram", trace, false, "fail=fill:1:E_INVALID");
  INFO(r.describe());
  const std::string text = read(trace);
  CHECK(text.find("ram: device_open {\"plugin\":") != std::string::npos);
  CHECK(text.find("= E_INVALID (by the layer fault)") != std::string::npos);
  CHECK(text.find("payload") == std::string::npos);
}

TEST_CASE("trace: a file that cannot be written is an error in the log and the report, and the program works on", "[layers]") {
  TestWorld world;
  ProcessResult r = record(world, "ram", "/no/such/folder/trace.json", false);
  INFO(r.describe());
  CHECK(r.ok());
  CHECK(r.err.find("the trace cannot be written to /no/such/folder/trace.json") != std::string::npos);
}

TEST_CASE("replay: makes the calls of a trace again and gets the same bytes, of the same plugin and of another one", "[layers]") {
  for (const char* recorded : {"mock", "ram", "host"}) {
    if (!std::filesystem::exists(plugin_file(recorded))) continue;
    TestWorld world;
    const std::string trace = (world.folder() / "trace.json").string();
    ProcessResult r = record(world, recorded, trace, true);
    INFO(r.describe());
    REQUIRE(r.ok());
    ProcessResult again = world.run({FLHAL_TEST_REPLAY, trace, "--plugin", plugin_file(recorded)});
    INFO(recorded << "\n" << again.describe());
    CHECK(again.exit_code == 0);
    CHECK(again.out.find(": 0 otherwise than recorded, 0 left out") != std::string::npos);
  }
  TestWorld world;                        // ten slots are made of any plugin that has them
  const std::string trace = (world.folder() / "trace.json").string();
  REQUIRE(record(world, "ram", trace, true).ok());
  ProcessResult other = world.run({FLHAL_TEST_REPLAY, trace, "--plugin", plugin_file("mock")});
  INFO(other.describe());
  CHECK(other.exit_code == 1);            // it can do something more: that is a difference, too
  CHECK(other.out.find("memory_alloc: answered OK, had answered E_UNSUPPORTED") != std::string::npos);
  CHECK(other.out.find(": 1 otherwise than recorded, 0 left out") != std::string::npos);
}

TEST_CASE("replay: says which call answers otherwise, and which bytes", "[layers]") {
  TestWorld world;
  const std::string trace = (world.folder() / "trace.json").string();
  REQUIRE(record(world, "ram", trace, true).ok());
  world.set("FLHAL_MUTANT", "copy_drops_the_tail");
  world.set("FLHAL_MUTANT_BASE", plugin_file("ram"));
  ProcessResult r = world.run({FLHAL_TEST_REPLAY, trace, "--plugin", FLHAL_TEST_MUTANT});
  INFO(r.describe());
  CHECK(r.exit_code == 1);
  CHECK(r.out.find(", copy:") != std::string::npos);
  CHECK(r.out.find("bytes came back otherwise, the first at") != std::string::npos);
}

TEST_CASE("replay: refuses what it cannot read, with what it can", "[layers]") {
  TestWorld world;
  const auto path = world.write("x.json", "hello\n");
  struct { std::vector<std::string> argv; const char* text; } rows[] = {
      {{FLHAL_TEST_REPLAY}, "usage: flhal-replay"},
      {{FLHAL_TEST_REPLAY, path.string(), "--plugin", plugin_file("ram")}, "this is no event of a trace in Chrome's form"},
      {{FLHAL_TEST_REPLAY, "/no/trace", "--plugin", plugin_file("ram")}, "/no/trace cannot be read"}};
  for (auto& row : rows) {
    ProcessResult r = world.run(row.argv);
    INFO(r.describe());
    CHECK(r.exit_code == 2);
    CHECK(r.err.find(row.text) != std::string::npos);
  }
}
