// tests/core/abi_range_test.cc: versions are numbers, and both sides appear in the sentence.
#include "core/abi_range.h"

#include <catch2/catch.hpp>

#include "core/manifest.h"

using namespace flhal;

TEST_CASE("LOAD-02 abi: ranges of minors meet in the highest common one", "[core][abi][LOAD-02]") {
  // Goal: every pair of ranges is judged as plain numbers. Method: all ranges below 12 on both sides against a count.
  for (uint32_t core_oldest = 0; core_oldest < 12; ++core_oldest)
    for (uint32_t core_newest = core_oldest; core_newest < 12; ++core_newest)
      for (uint32_t oldest = 0; oldest < 12; ++oldest)
        for (uint32_t newest = oldest; newest < 12; ++newest) {
          int64_t best = -1;
          for (uint32_t minor = 0; minor < 12; ++minor)
            if (minor >= core_oldest && minor <= core_newest && minor >= oldest && minor <= newest) best = minor;
          uint32_t minor = 99;
          Refusal refusal = negotiate_abi({core_oldest, core_newest}, {oldest, newest}, "org.example.chip", &minor);
          if (bool(refusal) != (best < 0) || (best >= 0 && minor != best)) {
            INFO(core_oldest << ".." << core_newest << " against " << oldest << ".." << newest << ": " << refusal.sentence());
            CHECK(bool(refusal) == (best < 0));
            CHECK(minor == best);
          }
        }
}

TEST_CASE("LOAD-02 abi: the refusal names both versions in plain decimals and the command", "[core][abi][LOAD-02]") {
  uint32_t minor = 0;
  Refusal refusal = negotiate_abi({0, 9}, {10, 12}, "chip", &minor);
  REQUIRE(refusal);
  CHECK(refusal.code == FLHAL_E_ABI);
  CHECK(refusal.reason == "plugin chip works with the plugin ABI 1.10 to 1.12 and this flhal with 1.0 to 1.9");
  CHECK(refusal.remedy == "install versions that meet: pip install --upgrade torch-fl torch-fl-plugin-chip");
  refusal = negotiate_abi({10, 10}, {9, 9}, "chip", &minor);
  CHECK(refusal.reason == "plugin chip works with the plugin ABI 1.9 and this flhal with 1.10");
  CHECK_FALSE(negotiate_abi({0, 9}, {9, 12}, "chip", &minor));         // ranges that only touch
  CHECK(minor == 9);
  refusal = negotiate_abi({0, 9}, {5, 4}, "chip", &minor);             // a range the wrong way round
  CHECK(refusal.reason.find("1.5 and newer, but is itself 1.4") != std::string::npos);
  refusal = other_major(2, "chip");
  CHECK(refusal.reason == "plugin chip was built for the plugin ABI 2.x and this flhal speaks 1.0");
}

TEST_CASE("LOAD-02 abi: a version is major.minor in decimals and nothing else", "[core][abi][LOAD-02]") {
  CHECK(parse_abi_version("1.10")->minor == 10);
  CHECK(parse_abi_version("12.0")->major == 12);
  for (const char* bad : {"", "1", "1.", ".1", "1.0.0", "v1.0", "1.0 ", "1,0", "-1.0", "1.99999", "0x1.0", "1.0a"}) {
    INFO("'" << bad << "'");
    CHECK_FALSE(parse_abi_version(bad).has_value());
  }
}

TEST_CASE("LOAD-02 abi: a manifest is judged before its library is opened", "[core][abi][manifest][LOAD-02]") {
  auto check = [](const char* fields) {
    Manifest m;
    Refusal refusal = parse_manifest("/x/chip.json", fmt::format("{{\"flhal_manifest\": 1, \"id\": \"chip\", \"library\": \"a.so\"{}}}", fields), &m);
    CHECK_FALSE(refusal);
    return check_manifest_abi(m);
  };
  CHECK_FALSE(check(""));
  CHECK_FALSE(check(", \"abi\": \"1.0\""));
  CHECK_FALSE(check(", \"abi\": \"1.10\""));                             // newer, and may work with 1.0: the library will say
  CHECK(check(", \"abi\": \"2.0\"").reason == "plugin chip was built for the plugin ABI 2.x and this flhal speaks 1.0");
  CHECK(check(", \"abi\": \"1.10\", \"abi_oldest\": \"1.9\"").reason == "plugin chip works with the plugin ABI 1.9 to 1.10 and this flhal with 1.0");
}
