// tests/core/manifest_test.cc: every malformed field has its own sentence.
#include "core/manifest.h"

#include <catch2/catch.hpp>

using namespace flhal;

static Refusal parse(const std::string& text, Manifest* out = nullptr) {
  Manifest ignored;
  return parse_manifest("/plugins/chip.json", text, out ? out : &ignored);
}

TEST_CASE("manifest: all fields are read, and the library is relative to the manifest", "[core][manifest]") {
  Manifest m;
  REQUIRE_FALSE(parse(R"({"flhal_manifest": 1, "id": "org.example.chip-2_x", "library": "sub/../libchip.so", "version": "0.3", "abi": "1.10",
                          "abi_oldest": "1.2", "profile": "async", "from the future": {"a": [1]},
                          "probe_environment": ["ACME_*"], "probe_files": ["/proc/version"]})", &m));
  CHECK(m.id == "org.example.chip-2_x");
  CHECK(m.library == "/plugins/libchip.so");
  CHECK(m.version == "0.3");
  CHECK(m.abi->minor == 10);
  CHECK(m.abi_oldest->minor == 2);
  CHECK(m.probe_environment == std::vector<std::string>{"ACME_*"});
  REQUIRE_FALSE(parse(R"({"manifest_version": 1, "id": "a", "library": "/opt/acme/libchip.so"})", &m));
  CHECK(m.library == "/opt/acme/libchip.so");
}

TEST_CASE("LOAD-01 manifest: each way to be malformed has its own sentence", "[core][manifest][LOAD-01]") {
  struct {
    const char* text, *sentence;
  } rows[] = {
      {"", "the manifest /plugins/chip.json: it is empty"},
      {"  \n ", "it is empty"},
      {"{\"flhal_manifest\": 1,\n \"id\": }", "it is not JSON (line 2, column 8)"},
      {"{\"flhal_manifest\": 1} trailing", "it is not JSON (line 1"},
      {"[1]", "it holds a list, not an object"},
      {"\"text\"", "it holds a string, not an object"},
      {"{}", "the field \"flhal_manifest\" is missing"},
      {"{\"flhal_manifest\": \"1\"}", "the field \"flhal_manifest\" is a string, and must be a whole number"},
      {"{\"flhal_manifest\": 0}", "the field \"flhal_manifest\" is 0"},
      {"{\"flhal_manifest\": 1.5}", "the field \"flhal_manifest\" is 1.5"},
      {"{\"flhal_manifest\": 2, \"id\": \"a\", \"library\": \"b\"}", "its format is 2 and this flhal reads up to 1"},
      {"{\"flhal_manifest\": 1}", "the field \"id\" is missing"},
      {"{\"flhal_manifest\": 1, \"id\": 7}", "the field \"id\" is a number"},
      {"{\"flhal_manifest\": 1, \"id\": \"\"}", "the field \"id\" is empty"},
      {"{\"flhal_manifest\": 1, \"id\": \"../x y\"}", "the id \"../x y\" is not one"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\"}", "the field \"library\" is missing"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": [\"b\"]}", "the field \"library\" is a list"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": \"b\", \"version\": 3}", "the field \"version\" is a number"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": \"b\", \"abi\": 1.0}", "the field \"abi\" is a number"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": \"b\", \"abi\": \"one\"}", "the field \"abi\" is \"one\", which is no version"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": \"b\", \"probe_files\": \"c\"}", "the field \"probe_files\" must be a list"},
      {"{\"flhal_manifest\": 1, \"id\": \"a\", \"library\": \"b\", \"probe_files\": [1]}", "the field \"probe_files\" must be a list"},
  };
  for (const auto& row : rows) {
    Refusal refusal = parse(row.text);
    INFO(row.text << " -> " << refusal.sentence());
    REQUIRE(refusal);
    CHECK(refusal.reason.find(row.sentence) != std::string::npos);
    CHECK(refusal.reason.rfind("the manifest /plugins/chip.json: ", 0) == 0);
    CHECK_FALSE(refusal.remedy.empty());
  }
}

TEST_CASE("manifest: deep nesting and a long id are refused, not followed", "[core][manifest]") {
  CHECK(parse("{\"flhal_manifest\": 1, \"x\": " + std::string(100000, '[')));
  CHECK(parse("{\"flhal_manifest\": 1, \"id\": \"" + std::string(5000, 'a') + "\", \"library\": \"b\"}").reason.size() < 400);
}
