// tests/layers/fault_test.cc: what goes wrong on purpose, and the rules that say so.
#include "layers/layers_world.h"
#include "layers/rules.h"

using namespace flhal;
using namespace flhal::test;

namespace {

Status fill_some(Device* device, uint64_t a) {
  const uint8_t zero = 0;
  return fill_bytes(device->default_stream, a, 64, &zero, 1);
}

}  // namespace

TEST_CASE("fault: the n-th call of a slot answers the status, with a sentence that names the rule", "[layers]") {
  Device* device = chip("ram");
  uint64_t a = allocate(device->default_stream, 4096);
  Set rules("faults", "fail=fill:3:E_INVALID, fail=copy:2+:e_unsupported");
  Set layers("layers", "fault,validate");
  CHECK(fill_some(device, a).ok());
  CHECK(fill_some(device, a).ok());
  CHECK(fill_some(device, a).code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("the layer fault answered here: fail=fill:3:E_INVALID") != std::string::npos);
  CHECK(fill_some(device, a).ok());
  std::vector<uint8_t> bytes(64);
  CHECK(copy_bytes(device->default_stream, a, number(bytes.data()), 64, 0).ok());
  for (int i = 0; i < 3; ++i) CHECK(copy_bytes(device->default_stream, a, number(bytes.data()), 64, 0).code() == FLHAL_E_UNSUPPORTED);
  LayersReport report;
  const cJSON* rule = report.row("faults", "rule", "fail=fill:3:E_INVALID");
  CHECK(LayersReport::number(rule, "calls") == 4);
  CHECK(LayersReport::number(rule, "struck") == 1);
  REQUIRE_OK(pool_free(a));
}

TEST_CASE("fault: memory that runs out is an error with figures, and the next allocation works", "[layers]") {
  Device* device = chip("ram");
  Set rules("faults", "fail=ram/memory_alloc:all:EXHAUSTED");
  {
    Set layers("layers", "fault");
    auto got = pool_allocate(device->default_stream, uint64_t{200} << 20);
    REQUIRE_FALSE(got.ok());
    CHECK(got.status().code() == FLHAL_E_OUT_OF_MEMORY);
    CHECK(last_error_text().find("209715200") != std::string::npos);
  }
  auto got = pool_allocate(device->default_stream, uint64_t{200} << 20);
  REQUIRE(got.ok());
  REQUIRE_OK(pool_free(*got));
}

TEST_CASE("fault: a lost device answers so until it is reset, and others work on", "[layers]") {
  Device *device = chip("chip_a"), *other = chip("ram");
  uint64_t a = allocate(device->default_stream, 4096), b = allocate(other->default_stream, 4096);
  REQUIRE_OK(device->default_stream->synchronize());
  Set rules("faults", "lose=2@mock");
  Set layers("layers", "fault,validate");
  CHECK(fill_some(device, a).ok());
  CHECK(fill_some(device, a).ok());
  (void)fill_some(device, a);
  CHECK(device->default_stream->synchronize().code() == FLHAL_E_DEVICE_LOST);
  CHECK(device->lost());
  CHECK(fill_some(other, b).ok());
  REQUIRE_OK(device->reset());
  uint64_t again = allocate(device->default_stream, 4096);
  CHECK(fill_some(device, again).ok());
  CHECK(device->default_stream->synchronize().ok());
  REQUIRE_OK(pool_free(again));
  REQUIRE_OK(pool_free(b));
}

TEST_CASE("fault: reorder tells events late, never early, and all of it ends well", "[layers]") {
  Device* device = chip("chip_b");
  auto one = make_stream(device, 0), two = make_stream(device, 0);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  uint64_t a = allocate(*one, 4096), b = allocate(*two, 4096);
  Set rules("faults", "reorder=7:3");
  Set layers("layers", "fault,validate");
  reset_layers();
  for (int i = 0; i < 20; ++i) {
    const auto value = static_cast<uint8_t>(i);
    REQUIRE_OK(fill_bytes(*one, a, 4096, &value, 1));
    Event event(0);
    REQUIRE_OK(event.record(*one));
    REQUIRE_OK(event.wait(*two));
    REQUIRE_OK(copy_bytes(*two, b, a, 4096, 0));
    CHECK(bytes_of(*two, b, 4096) == std::vector<uint8_t>(4096, value));
    Event back(0);
    REQUIRE_OK(back.record(*two));
    REQUIRE_OK(back.wait(*one));
  }
  LayersReport report;
  CHECK(LayersReport::number(report.row("faults", "rule", "reorder=7:3"), "struck") > 0);
  CHECK(report.row("findings", "level", "error") == nullptr);
  REQUIRE_OK(pool_free(a));
  REQUIRE_OK(pool_free(b));
  REQUIRE_OK((*one)->synchronize());
  REQUIRE_OK((*two)->synchronize());
  REQUIRE_OK(release_stream(*one));
  REQUIRE_OK(release_stream(*two));
}

TEST_CASE("fault: delay holds a call up and changes nothing else", "[layers]") {
  Device* device = chip("ram");
  uint64_t a = allocate(device->default_stream, 4096);
  Set rules("faults", "delay=fill:2:30");
  Set layers("layers", "fault,stats");
  reset_layers();
  for (int i = 0; i < 3; ++i) REQUIRE_OK(fill_some(device, a));
  LayersReport report;
  CHECK(LayersReport::number(report.row("faults", "rule", "delay=fill:2:30"), "struck") == 1);
  CHECK(LayersReport::number(report.row("stats", "slot", "fill"), "calls") == 3);
  REQUIRE_OK(pool_free(a));
}

TEST_CASE("fault: a rule that is none is refused with every form, slot and status", "[layers]") {
  for (const char* wrong : {"fail", "fail=", "fail=cpy:1", "fail=copy", "fail=copy:0", "fail=copy:x", "fail=copy:1:E_WRONG", "fail=copy:1:OK",
                            "fail=memory_free:1", "delay=copy:1", "delay=copy:1:0", "reorder=x", "reorder=1:0", "lose=0", "lose=1@", "lose=1@mock:x",
                            "break=copy:1", "fail=/copy:1", "fail=copy:1,,"}) {
    INFO(wrong);
    CHECK(config_set("faults", wrong).code() == FLHAL_E_INVALID);
    const std::string text = last_error_text();
    CHECK(text.find(wrong) != std::string::npos);
    for (const char* part : {"fail=[plugin/]slot:n[:status]", "delay=[plugin/]slot:n:milliseconds", "reorder=seed[:milliseconds]", "lose=n[@plugin[:device index]]",
                             "plan_run", "event_signal", "E_DEVICE_LOST"})
      CHECK(text.find(part) != std::string::npos);
  }
  for (const char* right : {"fail=copy:1", "fail=mock/plan_run:all:DECLINED", "delay=memory_free:3+:5", "reorder=0", "lose=5", "lose=5@mock:1", ""})
    CHECK(layers::parse_faults(right).has_value());
  CHECK(config_set("layers", "validate,trce").code() == FLHAL_E_INVALID);
  CHECK(last_error_text().find("none, or a comma list of validate, trace, fault and stats") != std::string::npos);
}
