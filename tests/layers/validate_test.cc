// tests/layers/validate_test.cc: handles, ranges, calls at once and missing waits, by calls that break the contract on purpose.
#include <functional>
#include <thread>

#include "layers/fake_plugin.h"
#include "layers/layers_world.h"

using namespace flhal;
using namespace flhal::test;

namespace {

// The finding of a name, of one plugin; its values as text, "" when there is none.
std::string finding(const char* name, const char* plugin = "mock") {
  LayersReport report;
  const cJSON* item = nullptr;
  cJSON_ArrayForEach(item, report.list("findings"))
    if (LayersReport::text(item, "finding") == name && LayersReport::text(item, "plugin") == plugin) return LayersReport::text(item, "values");
  return "";
}
// Of the level error: the others are measured times, of which a busy machine has many.
int findings() {
  LayersReport report;
  int n = 0;
  const cJSON* item = nullptr;
  cJSON_ArrayForEach(item, report.list("findings")) n += LayersReport::text(item, "level") == "error";
  return n;
}

struct TwoStreams {
  Device* device = chip("chip_a");
  Stream *one = *make_stream(device, 0), *two = *make_stream(device, 0);
  uint64_t a = allocate(one, 8192), b = allocate(two, 8192);
  TwoStreams() {
    REQUIRE_OK(one->synchronize());
    REQUIRE_OK(two->synchronize());
    reset_layers();
  }
  ~TwoStreams() {
    for (Stream* s : {one, two}) (void)s->synchronize();
    (void)pool_free(a);
    (void)pool_free(b);
    for (Stream* s : {one, two}) (void)release_stream(s);
  }
};

constexpr uint8_t kValue = 9;

}  // namespace

TEST_CASE("validate: core's own use of a plugin is found faultless", "[layers]") {
  reset_layers();
  TwoStreams s;
  for (int i = 0; i < 10; ++i) {
    REQUIRE_OK(fill_bytes(s.one, s.a, 8192, &kValue, 1));
    Event event(0);
    REQUIRE_OK(event.record(s.one));
    REQUIRE_OK(event.wait(s.two));
    REQUIRE_OK(copy_bytes(s.two, s.b, s.a, 8192, 0));
    CHECK(bytes_of(s.two, s.b, 16) == std::vector<uint8_t>(16, kValue));
  }
  INFO(layers_json());
  CHECK(findings() == 0);
}

TEST_CASE("COPY-05 a consumer on one stream that does not wait for another one's copy is reported, with a wait it is not", "[layers]") {
  for (bool waits : {true, false}) {
    TwoStreams s;
    MockHold hold;                                       // the copy is unfinished whatever the machine does
    REQUIRE_OK(copy_bytes(s.one, s.a, s.b, 4096, 0));
    Event event(0);
    REQUIRE_OK(event.record(s.one));
    if (waits) REQUIRE_OK(event.wait(s.two));
    REQUIRE_OK(copy_bytes(s.two, s.b + 4096, s.a + 1024, 1024, 0));   // consumes what the other stream writes
    const std::string values = finding("wait_missing");
    INFO(values);
    CHECK((values == "") == waits);
    if (!waits) {
      CHECK(values.find("copy reads [") != std::string::npos);
      CHECK(values.find("while copy (call ") != std::string::npos);
      CHECK(values.find("writes [") != std::string::npos);
    }
  }
}

TEST_CASE("COPY-05 every pair of producer and consumer: fill and copy, reading and writing, and the host", "[layers]") {
  const std::pair<const char*, std::function<Status(TwoStreams&, Stream*)>> kinds[] = {
      {"fill", [](TwoStreams& s, Stream* on) { return fill_bytes(on, s.a, 4096, &kValue, 1); }},
      {"copy to", [](TwoStreams& s, Stream* on) { return copy_bytes(on, s.a, s.b, 4096, 0); }},
      {"copy from", [](TwoStreams& s, Stream* on) { return copy_bytes(on, s.b + 4096, s.a, 2048, 0); }},
  };
  for (const auto& [first, produce] : kinds) {
    for (const auto& [second, consume] : kinds) {
      const bool both_read = std::string(first) == "copy from" && std::string(second) == "copy from";
      for (int way : {0, 1, 2}) {                        // nothing, an event, the host waits
        TwoStreams s;
        REQUIRE_OK(produce(s, s.one));
        Event event(0);
        REQUIRE_OK(event.record(s.one));
        if (way == 1) REQUIRE_OK(event.wait(s.two));
        if (way == 2) REQUIRE_OK(s.one->synchronize());
        if (way == 0) {
          MockHold hold;
          REQUIRE_OK(produce(s, s.one));
          REQUIRE_OK(consume(s, s.two));
        } else {
          REQUIRE_OK(consume(s, s.two));
        }
        INFO(first << " then " << second << ", way " << way << ": " << finding("wait_missing"));
        if (way == 0 && !both_read) CHECK(finding("wait_missing") != "");
        if (way != 0) CHECK(findings() == 0);
      }
    }
  }
}

TEST_CASE("validate: handles that are dead, of another kind, device or plugin, or NULL", "[layers]") {
  FakePlugin fake("fake"), other("other");
  auto& t = fake.plugin.table;
  flhal_p_memory* slab = fake.slab(4096);
  reset_layers();
  t.memory_free(fake.device, slab);
  CHECK(findings() == 0);
  (void)fake.fill(slab, 0, 64);
  CHECK(finding("handle_dead", "fake").find("was given back by call") != std::string::npos);
  (void)t.event_query(reinterpret_cast<flhal_p_event*>(fake.device));
  CHECK(finding("handle_of_another_kind", "fake").find("is a device, and a event is needed") != std::string::npos);
  (void)t.stream_query(other.stream());
  CHECK(finding("handle_unknown", "fake").find("of plugin other") != std::string::npos);
  (void)t.event_synchronize(nullptr);
  CHECK(finding("handle_null", "fake") == "the argument event is NULL");
  reset_layers();
  flhal_p_device* second = fake.open(1);
  (void)fake.fill(fake.slab(64, second), 0, 64);
  CHECK(finding("handle_of_another_device", "fake").find("device 2, the call is for device 1") != std::string::npos);
  t.device_close(second);
  CHECK(finding("handle_left", "fake") == "1 slab");
  CHECK(finding("handle_left", "other") == "");
}

TEST_CASE("validate: ranges against their slab, patterns, rows, operands, arguments and workspaces", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_memory* slab = fake.slab(4096);
  reset_layers();
  REQUIRE(fake.fill(slab, 0, 4096) == FLHAL_OK);
  REQUIRE(fake.fill(slab, 4096, 0) == FLHAL_OK);
  CHECK(findings() == 0);
  (void)fake.fill(slab, 4090, 7);
  CHECK(finding("out_of_bounds", "fake") == "the target is [4090, 4097) of slab 1, which has 4096 bytes");
  reset_layers();
  (void)fake.fill(slab, UINT64_MAX - 2, 7);              // an end that wraps
  CHECK(finding("out_of_bounds", "fake") != "");
  const flhal_p_place at{slab, 0, nullptr};
  const char zeros[8] = {};
  (void)t.fill(fake.device, nullptr, &at, 7, zeros, 2);
  CHECK(finding("argument_wrong", "fake") == "7 bytes of a pattern of 2");
  reset_layers();
  flhal_p_copy_v1 rows{sizeof rows, FLHAL_ST_COPY, nullptr, at, {slab, 2048, nullptr}, 64, 33, 64, 64};
  (void)t.copy(fake.device, nullptr, &rows);             // 33 rows of 64 from 2048: 64 bytes too far
  CHECK(finding("out_of_bounds", "fake") == "the source is [2048, 4160) of slab 1, which has 4096 bytes");
  reset_layers();
  flhal_p_function* f = fake.function();
  (void)fake.launch(f, nullptr, slab, 4096);
  CHECK(findings() == 0);
  (void)fake.launch(f, nullptr, slab, 4097);
  CHECK(finding("out_of_bounds", "fake") != "");
  reset_layers();
  const int64_t sizes[2] = {4, 8}, strides[2] = {64, 1};
  flhal_tensor_v1 x{0, slab, 0, 3 * 64 * 4 + 32, sizes, strides, FLHAL_F32, 2, 0, 0, 0};
  flhal_op_call_v1 call{};
  call.name = "relu";
  call.tensors = &x;
  call.tensor_stride = sizeof x;
  call.n_outputs = 1;
  flhal_plan_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLAN_INFO;
  flhal_p_plan* plan = nullptr;
  REQUIRE(fake.plugin.ops.plan_create(fake.device, &call, &info, &plan) == FLHAL_OK);
  CHECK(info.workspace_bytes == 256);                    // what the plugin wrote reaches core
  const flhal_p_place workspace{slab, 2048, nullptr}, outside{slab, 4000, nullptr};
  (void)fake.plugin.ops.plan_run(plan, nullptr, &call, &workspace);
  CHECK(findings() == 0);
  x.extent -= 4;
  (void)fake.plugin.ops.plan_run(plan, nullptr, &call, &workspace);
  CHECK(finding("out_of_bounds", "fake") == "operand 0 of relu spans 800 bytes of an extent of 796");
  reset_layers();
  x.extent += 4;
  (void)fake.plugin.ops.plan_run(plan, nullptr, &call, &outside);
  CHECK(finding("out_of_bounds", "fake").find("the workspace is [4000, 4256)") == 0);
  (void)fake.plugin.ops.plan_run(plan, nullptr, &call, nullptr);
  CHECK(finding("workspace_wrong", "fake") == "the plan asked for 256 bytes, and the workspace is NULL");
}

TEST_CASE("validate: views of the host are opened and closed in pairs", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_memory* slab = fake.slab(4096);
  const flhal_p_place place{slab, 64, nullptr};
  void *one = nullptr, *two = nullptr;
  reset_layers();
  REQUIRE(t.host_begin(fake.device, &place, 128, FLHAL_READ, &one) == FLHAL_OK);
  REQUIRE(t.host_begin(fake.device, &place, 128, FLHAL_WRITE, &two) == FLHAL_OK);
  REQUIRE(t.host_end(fake.device, &place, 128, FLHAL_READ, one) == FLHAL_OK);
  CHECK(findings() == 0);
  (void)t.host_end(fake.device, &place, 128, FLHAL_READ, one);
  CHECK(finding("view_unknown", "fake").find("[64, 192) of slab 1") == 0);
  t.memory_free(fake.device, slab);
  CHECK(finding("freed_in_use", "fake") == "slab 1 with 1 open views");
}

TEST_CASE("validate: two calls at once, on one stream and in a plugin that takes one at a time", "[layers]") {
  FakePlugin fake("fake", FLHAL_PLUGIN_SERIALIZE_ALL);
  flhal_p_function* f = fake.function();
  flhal_p_stream* stream = fake.stream();
  reset_layers();
  FakePlugin::inside = [&] {                             // while a launch is inside
    FakePlugin::inside = nullptr;
    std::thread([&] { (void)fake.plugin.table.stream_query(stream); }).join();
  };
  (void)fake.launch(f, stream);
  CHECK(finding("stream_in_two_calls", "fake") == "stream 1 is in launch");
  CHECK(finding("serialize_all_ignored", "fake").find("is in another slot") != std::string::npos);
  reset_layers();
  (void)fake.launch(f, stream);
  (void)fake.plugin.table.stream_query(stream);
  CHECK(findings() == 0);
}

TEST_CASE("validate: events that were never recorded, and signals of others than host-signalled ones", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_stream* stream = fake.stream();
  reset_layers();
  (void)t.event_wait(fake.event(FLHAL_EVENT_HOST_SIGNALED), stream);
  CHECK(finding("wait_for_nothing", "fake") == "");
  (void)t.event_wait(fake.event(), stream);
  CHECK(finding("wait_for_nothing", "fake") == "event 2");
  (void)t.event_signal(fake.event(), FLHAL_OK);
  CHECK(finding("signal_out_of_place", "fake") == "event 3");
}

TEST_CASE("validate: what is given back while queued work needs it", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_stream* stream = fake.stream();
  for (bool waits : {true, false}) {
    flhal_p_memory* slab = fake.slab(4096);
    reset_layers();
    REQUIRE(fake.fill(slab, 0, 64, stream) == FLHAL_OK);
    if (waits) REQUIRE(t.stream_synchronize(stream) == FLHAL_OK);
    t.memory_free(fake.device, slab);
    CHECK((finding("freed_in_use", "fake") == "") == waits);
  }
  t.stream_destroy(stream);                              // the second fill was not waited for
  LayersReport report;
  CHECK(LayersReport::text(report.row("findings", "slot", "stream_destroy"), "values") == "stream 1, whose work nobody has seen to end");
}

TEST_CASE("COPY-05 a kernel that begins to read what another stream's copy still writes is reported, a chain of events is followed", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_memory* slab = fake.slab(4096);
  flhal_p_function* f = fake.function();
  flhal_p_stream *one = fake.stream(), *two = fake.stream(), *three = fake.stream();
  flhal_p_event *a = fake.event(), *b = fake.event();
  reset_layers();
  REQUIRE(fake.fill(slab, 0, 1024, one) == FLHAL_OK);
  REQUIRE(t.event_record(a, one) == FLHAL_OK);
  REQUIRE(t.event_wait(a, two) == FLHAL_OK);
  REQUIRE(t.event_record(b, two) == FLHAL_OK);
  REQUIRE(fake.launch(f, three, slab, 1024) == FLHAL_OK);   // other bytes
  CHECK(findings() == 0);
  REQUIRE(t.event_wait(b, three) == FLHAL_OK);              // behind one by way of two
  REQUIRE(fake.launch(f, three, slab, 512) == FLHAL_OK);
  CHECK(findings() == 0);
  REQUIRE(fake.fill(slab, 0, 1024, one) == FLHAL_OK);       // ... but not behind this, nor does it wait for the kernel
  CHECK(finding("wait_missing", "fake").find("fill writes [0, 1024) of slab 1 on stream 1, while launch") == 0);
  reset_layers();
  REQUIRE(fake.launch(f, three, slab, 512) == FLHAL_OK);
  CHECK(finding("wait_missing", "fake").find("launch reads [512, 513) of slab 1 on stream 3, while fill") == 0);
}

TEST_CASE("COPY-05 a wait for a record of earlier does not cover what came after it", "[layers]") {
  FakePlugin fake("fake");
  auto& t = fake.plugin.table;
  flhal_p_memory* slab = fake.slab(4096);
  flhal_p_stream *one = fake.stream(), *two = fake.stream();
  flhal_p_event* a = fake.event();
  reset_layers();
  REQUIRE(t.event_record(a, one) == FLHAL_OK);
  REQUIRE(fake.fill(slab, 0, 1024, one) == FLHAL_OK);
  REQUIRE(t.event_wait(a, two) == FLHAL_OK);
  REQUIRE(fake.fill(slab, 1024, 64, two) == FLHAL_OK);
  CHECK(findings() == 0);
  REQUIRE(fake.fill(slab, 1023, 64, two) == FLHAL_OK);
  CHECK(finding("wait_missing", "fake") != "");
}

TEST_CASE("validate: turned on late it takes what exists for good and checks the rest", "[layers]") {
  Set off("layers", "none");
  FakePlugin fake("fake");
  flhal_p_memory* early = fake.slab(4096);
  Set on("layers", "validate");
  reset_layers();
  (void)fake.fill(early, 1 << 20, 64);                   // its size was not seen
  CHECK(findings() == 0);
  (void)fake.fill(fake.slab(4096), 4096, 64);
  CHECK(finding("out_of_bounds", "fake") != "");
  fake.plugin.table.memory_free(fake.device, early);
  (void)fake.fill(early, 0, 64);
  CHECK(finding("handle_dead", "fake") != "");
}
