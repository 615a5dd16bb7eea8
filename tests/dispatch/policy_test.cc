// tests/dispatch/policy_test.cc: what may leave the chip, what is counted, and what a user is told.
#include <catch2/catch.hpp>

#include <cjson/cJSON.h>

#include <memory>
#include <mutex>
#include <thread>

#include "call.h"
#include "core/log.h"
#include "dispatch/report.h"

using namespace flhal::test;
using Catch::Contains;

namespace {

std::mutex g_lines_mutex;
std::vector<std::string> g_lines;

class LogLines {
 public:
  LogLines() {
    std::lock_guard lock(g_lines_mutex);
    g_lines.clear();
    flhal::set_log_sink([](flhal::LogLevel, std::string_view text) {
      std::lock_guard inner(g_lines_mutex);
      g_lines.emplace_back(text);
    });
  }
  ~LogLines() { flhal::set_log_sink(nullptr); }
  size_t count(const std::string& part) const {
    std::lock_guard lock(g_lines_mutex);
    size_t n = 0;
    for (const std::string& line : g_lines) n += line.find(part) != std::string::npos;
    return n;
  }
};

// ram has memory only: every op takes the host route.
Call host_call(flhal_stream* s, Tensor* out) {
  Tensor x = floats(s, {4}, -2);
  *out = empty(s, {4});
  return {FLHAL_OP_RELU, {*out}, {x}};
}
flhal_stream* ram() {
  for (uint32_t i = 0; i < flhal_device_count(); ++i) {
    flhal_device_info info{};
    info.struct_size = sizeof info;
    flhal_device_get_info(flhal_device_at(i), &info);
    if (!info.has_kernels) return flhal_stream_default(flhal_device_at(i));
  }
  return nullptr;
}

struct Json {
  cJSON* root;
  explicit Json(const std::string& text) : root(cJSON_Parse(text.c_str())) {}
  ~Json() { cJSON_Delete(root); }
  const cJSON* row(const char* op, const char* route) const {
    const cJSON* item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "ops")) {
      if (std::string(cJSON_GetObjectItem(item, "op")->valuestring) == op &&
          std::string(cJSON_GetObjectItem(item, "route")->valuestring) == route)
        return item;
    }
    return nullptr;
  }
};
double number_of(const cJSON* item, const char* key) {
  const cJSON* n = item ? cJSON_GetObjectItem(item, key) : nullptr;
  return n ? n->valuedouble : -1;
}

}  // namespace

TEST_CASE("policy: a memory-only chip computes by the host route, which is counted", "[dispatch][policy]") {
  flhal_stream* s = ram();
  REQUIRE(s);
  REQUIRE(flhal_report_reset("fallback") == FLHAL_OK);
  Tensor out;
  Call call = host_call(s, &out);
  REQUIRE(call.run() == FLHAL_OK);
  REQUIRE(call.run() == FLHAL_OK);
  CHECK(values(out) == std::vector<float>{0, 0, 0, 1});
  Json report_json(report("fallback"));
  const cJSON* row = report_json.row("relu", "host");
  REQUIRE(row);
  CHECK(number_of(row, "calls") == 2);
  CHECK(number_of(row, "bytes_to_host") == 32);
  CHECK(number_of(row, "bytes_to_device") == 32);
  CHECK_THAT(cJSON_GetObjectItem(row, "reason")->valuestring,
             Contains("native: the plugin offers no native ops") && Contains("kernel: the chip runs no portable kernels"));
  Json routes(report("routes"));
  CHECK(number_of(cJSON_GetObjectItem(routes.root, "routes"), "host") == 2);
}

TEST_CASE("policy: strict refuses the host route and says what to do", "[dispatch][policy]") {
  Tensor out;
  Call call = host_call(ram(), &out);
  Setting strict("fallback_policy", "strict");
  REQUIRE(call.run() == FLHAL_E_DENIED);
  CHECK_THAT(last_text(), Contains("relu") && Contains("strict") && Contains("set fallback_policy to auto or warn"));
  // The chip's own kernels are no fallback.
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4}), y = empty(s, {4});
  CHECK(Call{FLHAL_OP_RELU, {y}, {x}}.run() == FLHAL_OK);
  CHECK(Call{FLHAL_OP_ADD, {y}, {x, x}}.run() == FLHAL_OK);
}

TEST_CASE("policy: NO_HOST_ROUTE declines instead, with the reason", "[dispatch][policy]") {
  Tensor out;
  Call call = host_call(ram(), &out);
  call.flags = FLHAL_CALL_NO_HOST_ROUTE;
  REQUIRE(call.run() == FLHAL_DECLINED);
  CHECK_THAT(flhal_last_decline(), Contains("the call's flags forbid it"));
}

TEST_CASE("policy: scopes go before the setting, per thread and per op", "[dispatch][policy]") {
  Tensor out;
  Call call = host_call(ram(), &out);
  REQUIRE(flhal_fallback_push("strict", nullptr) == FLHAL_OK);
  CHECK(call.run() == FLHAL_E_DENIED);
  std::thread([&] { CHECK(call.run() == FLHAL_OK); }).join();
  REQUIRE(flhal_fallback_push("auto", "relu") == FLHAL_OK);
  CHECK(call.run() == FLHAL_OK);
  REQUIRE(flhal_fallback_pop() == FLHAL_OK);
  REQUIRE(flhal_fallback_push("auto", "exp") == FLHAL_OK);
  CHECK(call.run() == FLHAL_E_DENIED);
  REQUIRE(flhal_fallback_pop() == FLHAL_OK);
  REQUIRE(flhal_fallback_pop() == FLHAL_OK);
  CHECK(call.run() == FLHAL_OK);
  CHECK(flhal_fallback_pop() == FLHAL_E_INVALID);
  CHECK(flhal_fallback_push("never", nullptr) == FLHAL_E_INVALID);
  CHECK_THAT(last_text(), Contains("valid are auto, warn and strict"));
}

TEST_CASE("policy: an op's own setting goes before the general one and after scopes, in every thread", "[dispatch][policy]") {
  Tensor out;
  Call call = host_call(ram(), &out);
  {
    Setting own("fallback_policy@relu", "strict", "default");
    CHECK(call.run() == FLHAL_E_DENIED);
    std::thread([&] { CHECK(call.run() == FLHAL_E_DENIED); }).join();
    REQUIRE(flhal_fallback_push("auto", nullptr) == FLHAL_OK);
    CHECK(call.run() == FLHAL_OK);
    REQUIRE(flhal_fallback_pop() == FLHAL_OK);
  }
  CHECK(call.run() == FLHAL_OK);
  Setting strict("fallback_policy", "strict");
  Setting exempt("fallback_policy@relu", "auto", "default");
  CHECK(call.run() == FLHAL_OK);
}

TEST_CASE("policy: warn says each op and reason once", "[dispatch][policy]") {
  flhal_report_reset("fallback");
  LogLines lines;
  Setting warn("fallback_policy", "warn");
  Tensor out;
  Call call = host_call(ram(), &out);
  for (int i = 0; i < 3; ++i) REQUIRE(call.run() == FLHAL_OK);
  CHECK(lines.count("relu leaves") == 1);
}

TEST_CASE("policy: the framework asks first, and its fallbacks are counted", "[dispatch][policy]") {
  flhal_report_reset("fallback");
  flhal_device* device = device_named("chip_a");
  uint64_t ticket = 0;
  REQUIRE(flhal_fallback_enter(device, "aten::svd", "no flhal op", &ticket) == FLHAL_OK);
  REQUIRE(flhal_fallback_leave(ticket, 100, 50, "model.py:7") == FLHAL_OK);
  REQUIRE(flhal_fallback_enter(device, "aten::svd", "no flhal op", &ticket) == FLHAL_OK);
  REQUIRE(flhal_fallback_leave(ticket, 100, 50, "model.py:9") == FLHAL_OK);
  Json fallback(report("fallback"));
  const cJSON* row = fallback.row("aten::svd", "fallback");
  REQUIRE(row);
  CHECK(number_of(row, "calls") == 2);
  CHECK(number_of(row, "bytes_to_host") == 200);
  CHECK(number_of(row, "bytes_to_device") == 100);
  CHECK(number_of(row, "ms") > 0);
  CHECK(std::string(cJSON_GetObjectItem(row, "call_site")->valuestring) == "model.py:7");
  CHECK(std::string(cJSON_GetObjectItem(row, "reason")->valuestring) == "no flhal op");
  {
    Setting strict("fallback_policy", "strict");
    REQUIRE(flhal_fallback_enter(device, "aten::svd", "no flhal op", &ticket) == FLHAL_E_DENIED);
    CHECK_THAT(last_text(), Contains("aten::svd") && Contains("no flhal op") && Contains("strict"));
    REQUIRE(flhal_fallback_push("auto", "svd") == FLHAL_OK);   // by its base name
    CHECK(flhal_fallback_enter(device, "aten::svd", "no flhal op", &ticket) == FLHAL_OK);
    flhal_fallback_pop();
  }
  CHECK(flhal_fallback_leave(uint64_t(0xfffffu) << 40, 0, 0, nullptr) == FLHAL_E_INVALID);
}

TEST_CASE("policy: one warning when the share of fallbacks passes the threshold, with the worst ops",
          "[dispatch][policy][threshold]") {
  // At level 2 what earlier tests queued may still run, and would be counted here.
  for (const char* name : {"ram", "chip_a", "chip_b"}) (void)flhal_device_synchronize(device_named(name));
  flhal_report_reset("fallback");
  LogLines lines;
  Setting threshold("fallback_threshold", "0.25");
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4}), y = empty(s, {4});
  Call on_chip{FLHAL_OP_ADD, {y}, {x, x}};
  flhal_device* device = device_named("chip_a");
  auto fall_back = [&](const char* op) {
    uint64_t ticket;
    REQUIRE(flhal_fallback_enter(device, op, "no flhal op", &ticket) == FLHAL_OK);
    REQUIRE(flhal_fallback_leave(ticket, 0, 0, nullptr) == FLHAL_OK);
  };
  for (int i = 0; i < 20; ++i) fall_back("aten::few");   // share 1, but below 100 calls
  CHECK(lines.count("left the chip") == 0);
  for (int i = 0; i < 200; ++i) REQUIRE(on_chip.run() == FLHAL_OK);
  REQUIRE(flhal_stream_synchronize(s) == FLHAL_OK);       // a queued call counts when it has run
  for (int i = 0; i < 40; ++i) fall_back("aten::many");   // 60 of 260
  CHECK(lines.count("left the chip") == 0);
  for (int i = 0; i < 40; ++i) fall_back("aten::many");
  CHECK(lines.count("left the chip") == 1);
  CHECK(lines.count("worst: aten::many") == 1);
  CHECK(lines.count("aten::few (20 calls") == 1);
}

TEST_CASE("policy: log_level debug prints every operator's route", "[dispatch][at_once][policy]") {
  LogLines lines;
  Setting debug("log_level", "debug");
  flhal_stream* s = stream_of("chip_a");
  Tensor x = floats(s, {4}), y = empty(s, {4});
  REQUIRE(Call{FLHAL_OP_ADD, {y}, {x, x}}.run() == FLHAL_OK);
  REQUIRE(Call{FLHAL_OP_ADD, {y}, {x, x}}.run() == FLHAL_OK);
  REQUIRE(Call{FLHAL_OP_EXP, {y}, {x}}.run() == FLHAL_OK);
  CHECK(lines.count("add on chip_a: native") == 2);
  CHECK(lines.count("exp on chip_a: kernel (native: the plugin declined: mock has") == 1);
  uint64_t ticket = 0;
  REQUIRE(flhal_fallback_enter(device_named("chip_a"), "aten::svd", "no flhal op", &ticket) == FLHAL_OK);
  REQUIRE(flhal_fallback_leave(ticket, 0, 0, nullptr) == FLHAL_OK);
  CHECK(lines.count("aten::svd on chip_a: fallback (no flhal op)") == 1);
}

TEST_CASE("reports: every name gives JSON, an unknown one lists them", "[dispatch][report]") {
  for (const char* which : {"load", "devices", "fallback", "routes", "memory", "config", "ops"}) {
    Json parsed(report(which));
    CAPTURE(which);
    CHECK(parsed.root != nullptr);
  }
  REQUIRE(flhal_report("nonsense", [](void*, const char*, uint64_t) {}, nullptr) == FLHAL_E_NOT_FOUND);
  CHECK_THAT(last_text(), Contains("load, devices, fallback, routes, memory, config, ops"));
  CHECK(flhal_report_reset("memory") == FLHAL_E_NOT_FOUND);
}

TEST_CASE("reports: log_level info gives a summary, once", "[dispatch][at_once][report]") {
  flhal_report_reset("fallback");
  Tensor out;
  Call call = host_call(ram(), &out);
  REQUIRE(call.run() == FLHAL_OK);
  LogLines lines;
  flhal::log_summary();
  CHECK(lines.count("calls by route") == 0);
  Setting info("log_level", "info");
  flhal::log_summary();
  flhal::log_summary();
  CHECK(lines.count("calls by route: host 1") == 1);
  CHECK(lines.count("relu on ") == 1);
}
