// tests/core/config_test.cc: each setting, by environment and by function.
#include <catch2/catch.hpp>

#include "core/config.h"
#include "core/config_values.h"
#include "core/discovery.h"
#include "core/misspelt.h"
#include "support/test_world.h"

using namespace flhal;
using namespace flhal::test;

namespace {

std::string run(TestWorld& world, std::vector<std::string> words) {
  words.insert(words.begin(), helper("core_one"));
  ProcessResult result = world.run(words);
  INFO(result.describe());
  CHECK(result.ok());
  return result.out;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("config: a pool size is a share or bytes with a unit", "[core][config]") {
  auto share = [](const char* text) { return parse_pool_limit(text).value_or(PoolLimit{-1, 1}).share; };
  auto bytes = [](const char* text) { return parse_pool_limit(text).value_or(PoolLimit{-1, 1}).bytes; };
  CHECK(share("0.7") == Approx(0.7));
  CHECK(share("70%") == Approx(0.7));
  CHECK(share("100%") == Approx(1.0));
  CHECK(share("1") == Approx(1.0));
  CHECK(bytes("8GiB") == 8ull << 30);
  CHECK(bytes("512MiB") == 512ull << 20);
  CHECK(bytes("8 GB") == 8000000000ull);
  CHECK(bytes("4096B") == 4096);
  CHECK(bytes("1.5GiB") == 3ull << 29);
  for (const char* bad : {"", "0", "0%", "101%", "-1", "1.01", "70", "8589934592", "8 XB", "GiB", "lots", "nan", "inf", "8GiBx", "0x10", "1e30GiB", "%"}) {
    INFO("value '" << bad << "'");
    CHECK_FALSE(parse_pool_limit(bad).has_value());
  }
}

TEST_CASE("config: numbers parse the same under every locale, and only as a whole", "[core][config]") {
  CHECK(parse_number("0.25", 0, 1).value() == 0.25);
  CHECK_FALSE(parse_number("0,25", 0, 1).has_value());
  CHECK_FALSE(parse_number("0.25 ", 0, 1).has_value());
  CHECK_FALSE(parse_number("1.5", 0, 1).has_value());
  CHECK_FALSE(parse_integer("07x", 0, 10).has_value());
  CHECK_FALSE(parse_integer("-1", 0, 10).has_value());
}

TEST_CASE("config: an unknown key and a bad value name what is valid", "[core][config]") {
  CHECK_FALSE(config_set("fallback_polcy", "auto").ok());
  CHECK(has(last_error_text(), "fallback_polcy"));
  CHECK(has(last_error_text(), "fallback_policy, fallback_threshold, memory_pool_size"));
  CHECK_FALSE(config_set("async_level", "3").ok());
  CHECK(last_error_text() == "flhal_config_set: '3' is no value of async_level; it takes 0, 1 or 2");
  CHECK(config_get("async_level").value() == "1");      // the old value stays
  CHECK_FALSE(config_set("log_level@chip", "info").ok());
  CHECK(has(last_error_text(), "of one device or one op there are memory_pool_size@<device> and fallback_policy@<op>"));
  CHECK_FALSE(config_set("fallback_policy@aten::relu", "never").ok());
  CHECK(has(last_error_text(), "'never' is no value of fallback_policy@aten::relu; it takes auto, warn or strict, or default"));
}

TEST_CASE("config: an op's own fallback policy is kept beside the general one, until default takes it back", "[core][config]") {
  uint32_t before = config().version.load();
  REQUIRE(config_set("fallback_policy@aten::config_op", "strict").ok());
  CHECK(config().version.load() == before + 1);
  CHECK(config_get("fallback_policy@aten::config_op").value() == "strict");
  CHECK(config_get("fallback_policy@aten::other").value() == config_get("fallback_policy").value());
  CHECK(config_policy_of("aten::config_op", "config_op") == FallbackPolicy::kStrict);
  CHECK_FALSE(config_policy_of("aten::other", "other").has_value());
  CHECK(has(config_json(), "fallback_policy@aten::config_op"));
  REQUIRE(config_set("fallback_policy@aten::config_op", "default").ok());
  CHECK_FALSE(config_policy_of("aten::config_op", "config_op").has_value());
  CHECK_FALSE(config().some_ops_have_policies.load());
}

TEST_CASE("config: every change grows the version and is read back", "[core][config]") {
  uint32_t before = config().version.load();
  REQUIRE(config_set("fallback_policy", "warn").ok());
  CHECK(config().fallback_policy.load() == FallbackPolicy::kWarn);
  CHECK(config().version.load() == before + 1);
  CHECK(config_get("fallback_policy").value() == "warn");
  REQUIRE(config_set("fallback_policy", "auto").ok());
  REQUIRE(config_set("memory_pool_size@config_chip", "4GiB").ok());
  CHECK(config_pool_limit("config_chip").bytes == 4ull << 30);
  CHECK(config_pool_limit("other_chip").bytes == 0);
  CHECK(config_get("memory_pool_size@config_chip").value() == "4294967296B");
  CHECK(parse_pool_limit(config_get("memory_pool_size@config_chip").value()).has_value());   // it can be set again
}

TEST_CASE("config: each setting is taken from the environment under both names, FLHAL_ wins", "[core][config][FALL-05]") {
  struct {
    const char* key, *variable, *value, *other, *bad, *valid;
  } rows[] = {
      {"fallback_policy", "FALLBACK_POLICY", "strict", "warn", "Strict", "auto, warn or strict"},
      {"fallback_threshold", "FALLBACK_THRESHOLD", "0.5", "0.25", "2", "a number from 0.0 to 1.0"},
      {"memory_pool_size", "MEMORY_POOL_SIZE", "8GiB", "70%", "8 pounds", "0.7 or 70%, or bytes with a unit like 512MiB or 8GiB"},
      {"async_level", "ASYNC_LEVEL", "0", "2", "two", "0, 1 or 2"},
      {"log_level", "LOG_LEVEL", "error", "info", "loud", "error, warn, info or debug"},
      {"route", "ROUTE", "host", "kernel", "gpu", "auto, native, kernel, composite or host"},
      {"kernel_schedule", "KERNEL_SCHEDULE", "thin", "fat", "wide", "auto, fat or thin"},
      {"kernel_cache", "KERNEL_CACHE", "off", "on", "full", "on or off"},
      {"float64", "FLOAT64", "demote", "refuse", "float32", "refuse or demote"},
      {"probe_timeout_ms", "PROBE_TIMEOUT_MS", "500", "700", "soon", "a whole number from 10 to 600000"},
      {"probe_cache", "PROBE_CACHE", "off", "refresh", "yes", "on, off or refresh"},
  };
  for (const auto& row : rows) {
    INFO(row.key);
    TestWorld world;
    world.set(std::string("TORCH_FL_") + row.variable, row.other);
    CHECK(has(run(world, {"init", "get", row.key}), fmt::format("init 0 \n{} = {}\n", row.key, row.other)));
    world.set(std::string("FLHAL_") + row.variable, row.value);
    CHECK(has(run(world, {"get", row.key}), fmt::format("{} = {}\n", row.key, row.value)));
    world.set(std::string("FLHAL_") + row.variable, "");                      // empty is unset
    CHECK(has(run(world, {"get", row.key}), fmt::format("{} = {}\n", row.key, row.other)));
    world.unset(std::string("FLHAL_") + row.variable);
    world.set(std::string("TORCH_FL_") + row.variable, row.bad);
    std::string out = run(world, {"init", "get", row.key, "set", row.key, row.value, "get", row.key, "init"});
    INFO(out);
    CHECK(has(out, fmt::format("init -1 the environment variable TORCH_FL_{}='{}' does not parse; {} takes ", row.variable, row.bad, row.key)));
    CHECK(has(out, row.valid));
    CHECK(has(out, fmt::format("{} = ! flhal_config_get: the environment variable", row.key)));
    CHECK(has(out, fmt::format("set 0 \n{} = {}\ninit 0", row.key, row.value)));   // a good value heals it
  }
}

TEST_CASE("config: with a bad environment value the count works, opening says why, and the report has the line", "[core][config]") {
  TestWorld world;
  world.add_plugin("ram");
  world.set("TORCH_FL_ASYNC_LEVEL", "many");
  std::string out = run(world, {"count", "open", "load", "set", "async_level", "0", "open"});
  INFO(out);
  CHECK(has(out, "count 1\n"));
  CHECK(has(out, "open -1 the environment variable TORCH_FL_ASYNC_LEVEL='many' does not parse; async_level takes 0, 1 or 2"));
  CHECK(has(out, "\"subject\":\t\"settings\""));
  CHECK(has(out, "set 0 \nopen 0 \n"));
}

TEST_CASE("config: what the first count reads cannot be set after it", "[core][config]") {
  TestWorld world;
  world.add_plugin("ram");
  std::string out = run(world, {"set", "visible_devices", "ram", "count", "set", "visible_devices", "none", "set", "plugin_path", "/x", "set", "log_level", "error"});
  INFO(out);
  CHECK(has(out, "set 0 \ncount 1\nset -1 flhal_config_set: visible_devices is read at the first device count"));
  CHECK(has(out, "set -1 flhal_config_set: plugin_path is read at the first device count"));
  CHECK(has(out, "set FLHAL_PLUGIN_PATH before the program starts"));
}

TEST_CASE("LOAD-06 config: a misspelt variable is told with the one that was meant; a maker's own is left alone", "[core][config][LOAD-06]") {
  CHECK(letters_apart("POLICY", "POLICY") == 0);
  CHECK(letters_apart("POLCY", "POLICY") == 1);
  CHECK(letters_apart("POLCIY", "POLICY") == 1);
  CHECK(letters_apart("", "abc") == 3);
  CHECK(letters_apart("LOG_LEVEL", "ROUTE") > 4);
  TestWorld world;
  world.add_plugin("ram");
  world.set("TORCH_FL_FALLBACK_POLCY", "strict");
  world.set("FLHAL_VISIBLE_DEVICE", "ram");
  world.set("FLHAL_ACME_CLOCK", "1");
  const std::string out = run(world, {"count", "load"});
  INFO(out);
  CHECK(has(out, "the environment variable TORCH_FL_FALLBACK_POLCY is not read by flhal"));
  CHECK(has(out, "TORCH_FL_FALLBACK_POLICY was probably meant"));
  CHECK(has(out, "FLHAL_VISIBLE_DEVICES was probably meant"));
  CHECK_FALSE(has(out, "ACME"));
}
