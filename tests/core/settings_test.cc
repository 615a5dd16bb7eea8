// tests/core/settings_test.cc: what each setting does for a program in C, by its environment alone. Under FLHAL_ names, which
// win; Python's view of the same is bindings/torch/tests/test_settings.py.
#include <catch2/catch.hpp>

#include <cstdio>

#include "support/test_world.h"

using namespace flhal::test;
using Catch::Contains;

namespace {

struct Said {
  std::string out, err;
};
// chip_a and chip_b, and ram, which has no kernels: relu on it leaves the chip.
Said run(std::vector<std::string> words, std::vector<std::pair<std::string, std::string>> environment, const std::string& mock = "") {
  TestWorld world;
  world.add_plugin("mock");
  world.add_plugin("ram");
  if (!mock.empty()) world.mock(mock);
  for (const auto& [name, value] : environment) world.set(name, value);
  words.insert(words.begin(), helper("settings_one"));
  ProcessResult result = world.run(words);
  INFO(result.describe());
  CHECK(result.ok());
  return {result.out, result.err};
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("settings in C: the pool size is a ceiling, as a share, per cent or bytes; FLHAL_ wins", "[core][config][settings]") {
  constexpr double kA = 16.0 * (1ull << 30), kB = 24.0 * (1ull << 30);
  struct { const char* text; double a, b; } rows[] = {
      {"0.7", 0.7 * kA, 0.7 * kB}, {"70%", 0.7 * kA, 0.7 * kB}, {"8GiB", 8589934592.0, 8589934592.0}, {"1.5 GB", 1.5e9, 1.5e9}, {"", 0.5 * kA, 0.5 * kB}};
  for (const auto& row : rows) {
    INFO("'" << row.text << "'");
    const Said said = run({"limit"}, {{"FLHAL_MEMORY_POOL_SIZE", row.text}, {"TORCH_FL_MEMORY_POOL_SIZE", *row.text ? "1GiB" : ""}});
    unsigned long long a = 0, b = 0;
    REQUIRE(sscanf(said.out.c_str(), "limit 0 %llu\nlimit 1 %llu", &a, &b) == 2);
    CHECK(static_cast<double>(a) == Approx(row.a).epsilon(1e-3));
    CHECK(static_cast<double>(b) == Approx(row.b).epsilon(1e-3));
  }
  CHECK(run({"limit"}, {{"TORCH_FL_MEMORY_POOL_SIZE", "1GiB"}}).out.find("limit 0 1073741824\n") != std::string::npos);
}

TEST_CASE("settings in C: the policy strict refuses what leaves the chip, with the reason and what to do", "[core][config][settings]") {
  const Said strict = run({"ops", "1", "leave", "1"}, {{"FLHAL_FALLBACK_POLICY", "strict"}, {"TORCH_FL_FALLBACK_POLICY", "auto"}});
  CHECK_THAT(strict.out, Contains("ops -") && Contains("relu: would leave ram (host route; ") && Contains("which fallback_policy strict forbids; set fallback_policy to auto or warn"));
  CHECK_THAT(strict.out, Contains("leave -") && Contains("my::seldom: would leave chip_a (CPU fallback; no kernel of mine)"));
  const Said warned = run({"ops", "3", "leave", "2"}, {{"FLHAL_FALLBACK_POLICY", "warn"}});
  CHECK_THAT(warned.out, Contains("ops 0 \nleave 0 \n"));
  CHECK(count(warned.err, "relu leaves ram (host route)") == 1);
  CHECK(count(warned.err, "my::often leaves chip_a (CPU fallback): no kernel of mine") == 1);
  const Said quiet = run({"ops", "3", "leave", "2"}, {});
  CHECK(count(quiet.err, "leaves") == 0);
}

TEST_CASE("settings in C: the threshold warns once, with the worst operators", "[core][config][settings]") {
  const Said said = run({"ops", "100", "leave", "150"}, {{"FLHAL_FALLBACK_THRESHOLD", "0.5"}, {"TORCH_FL_FALLBACK_THRESHOLD", "1"}});
  INFO(said.err);
  CHECK(count(said.err, "left the chip, above fallback_threshold 0.5; worst: ") == 1);
  CHECK_THAT(said.err, Contains("relu (") && Contains("my::often (") && Contains("calls: no kernel of mine)"));
  CHECK(count(run({"ops", "100", "leave", "150"}, {{"FLHAL_FALLBACK_THRESHOLD", "1"}}).err, "left the chip") == 0);
  CHECK(count(run({"ops", "20", "leave", "20"}, {{"FLHAL_FALLBACK_THRESHOLD", "0"}}).err, "left the chip") == 0);   // too few calls to judge
}

TEST_CASE("settings in C: debug prints every operator's route, info a summary, error nothing", "[core][config][settings]") {
  const Said debug = run({"ops", "2", "leave", "1"}, {{"FLHAL_LOG_LEVEL", "debug"}, {"TORCH_FL_LOG_LEVEL", "error"}});
  INFO(debug.err);
  CHECK(count(debug.err, "add on chip_a: native") == 2);
  CHECK(count(debug.err, "relu on ram: host (") == 2);
  CHECK(count(debug.err, "my::seldom on chip_a: fallback (no kernel of mine)") == 1);
  const Said info = run({"ops", "2"}, {{"FLHAL_LOG_LEVEL", "info"}});
  CHECK(count(info.err, "calls by route") == 1);
  CHECK(count(info.err, "add on chip_a: native") == 0);
  CHECK(run({"ops", "200", "leave", "150"}, {{"FLHAL_LOG_LEVEL", "error"}, {"FLHAL_FALLBACK_POLICY", "warn"}}).err == "");
}

TEST_CASE("settings in C: the async level decides whether a call has ended when it returns", "[core][config][settings]") {
  CHECK_THAT(run({"done"}, {{"FLHAL_ASYNC_LEVEL", "0"}, {"TORCH_FL_ASYNC_LEVEL", "1"}}, "delay_ms=300").out, Contains("done 1"));
  CHECK_THAT(run({"done"}, {{"FLHAL_ASYNC_LEVEL", "1"}, {"TORCH_FL_ASYNC_LEVEL", "0"}}, "delay_ms=300").out, Contains("done 0"));
}

TEST_CASE("settings in C: a forced route is taken, and said in the log", "[core][config][settings]") {
  CHECK_THAT(run({"ops", "1"}, {{"FLHAL_ROUTE", "host"}, {"FLHAL_LOG_LEVEL", "debug"}}).err, Contains("add on chip_a: host"));
  CHECK_THAT(run({"ops", "1"}, {{"TORCH_FL_ROUTE", "kernel"}, {"FLHAL_LOG_LEVEL", "debug"}}).err, Contains("add on chip_a: kernel"));
}

TEST_CASE("settings in C: texts and numbers without a choice are taken under both names, FLHAL_ wins", "[core][config][settings]") {
  struct { const char* key, *variable, *value, *other; } rows[] = {
      {"device", "DEVICE", "chip_b", "chip_a"}, {"visible_devices", "VISIBLE_DEVICES", "chip_b,ram", "ram"}, {"slow_slot_s", "SLOW_SLOT_S", "30", "60"},
      {"layers", "LAYERS", "validate,stats", "trace"}, {"faults", "FAULTS", "fail=copy:3", "lose=7"}, {"trace_file", "TRACE_FILE", "a.json", "b.json"},
      {"trace_payload", "TRACE_PAYLOAD", "on", "off"}};
  for (const auto& row : rows) {
    INFO(row.key);
    const std::string mine = std::string("FLHAL_") + row.variable, theirs = std::string("TORCH_FL_") + row.variable;
    const std::string wanted = std::string(row.key) + " = " + row.value + "\n";
    CHECK_THAT(run({"get", row.key}, {{mine, row.value}, {theirs, row.other}}).out, Contains(wanted));
    CHECK_THAT(run({"get", row.key}, {{mine, ""}, {theirs, row.value}}).out, Contains(wanted));   // empty is unset
  }
}
