// tests/layers/mutants_test.cc: the wrong plugins of conformance/mutants, each named by the layer validate.
#include <catch2/catch.hpp>
#include <filesystem>

#include "support/test_world.h"

using namespace flhal::test;

namespace {

struct Row {
  const char* mutant;
  const char* base;
  const char* finding;
};
// What only shows in bytes, in other processes or over many calls is left to flhal-conformance.
constexpr Row kRows[] = {
    {"slot_throws", "ram", "threw"},
    {"flushes_small_numbers", "ram", "floating_point_changed"},
    {"changes_the_locale", "ram", "locale_changed"},
    {"takes_a_signal", "ram", "signal_changed"},
    {"thread_takes_signals", "ram", "thread_takes_signals"},
    {"counting_starts_a_thread", "ram", "probe_starts_thread"},
    {"init_gives_no_handle", "ram", "init_gives_no_handle"},
    {"refuses_without_a_sentence", "ram", "refusal_without_text"},
    {"sentence_of_another_status", "ram", "text_of_another_status"},
    {"sentence_with_success", "ram", "text_without_refusal"},
    {"refusal_gives_a_handle", "ram", "refusal_gives_handle"},
    {"status_of_its_own", "ram", "status_unknown"},
    {"count_changes", "ram", "count_changed"},
    {"order_changes", "mock", "chip_moved"},
    {"uuid_is_zero", "ram", "uuid_zero"},
    {"uuid_of_the_model", "mock", "uuid_twice"},
    {"chip_name_with_capitals", "ram", "chip_name_wrong"},
    {"texts_are_reused", "ram", "text_changed"},
    {"largest_slab_above_the_memory", "ram", "memory_implausible"},
    {"claims_host_views", "ram", "capabilities_inconsistent"},
    {"dtype_listed_twice", "ram", "dtypes_wrong"},
    {"every_index_is_a_chip", "ram", "beyond_count"},
    {"open_gives_no_handle", "ram", "open_gives_no_handle"},
    {"budget_above_the_total", "mock", "budget_implausible"},
    {"slabs_share_memory", "ram", "slabs_are_one"},
    {"address_is_not_aligned", "mock", "address_misaligned"},
    {"address_without_the_capability", "ram", "address_unexpected"},
    {"full_memory_is_an_error", "ram", "full_is_an_error"},
    {"every_kind_is_device_memory", "ram", "kind_unknown"},
    {"view_ignores_the_offset", "host", "view_elsewhere"},
    {"copy_of_nothing_is_refused", "ram", "nothing_is_refused"},
    {"every_dialect_loads", "mock", "dialect_accepted"},
    {"log_runs_past_its_room", "mock", "log_past_capacity"},
    {"every_name_is_a_function", "mock", "function_invented"},
    {"streams_are_one", "mock", "streams_are_one"},
    {"fill_waits_for_its_stream", "mock", "submission_waits"},
    {"query_says_done", "mock", "stream_done_early"},
    {"query_blocks", "mock", "stream_query_waits"},
    {"synchronize_returns_early", "mock", "synchronize_early"},
    {"event_is_done_early", "mock", "event_done_early"},
    {"event_query_blocks", "mock", "event_query_waits"},
    {"new_event_is_pending", "mock", "new_event_pending"},
    {"event_synchronize_returns_early", "mock", "event_synchronize_early"},
    {"elapsed_in_microseconds", "mock", "elapsed_wrong"},
    {"declines_without_a_reason", "mock", "declined_without_reason"},
    {"yes_and_then_no", "mock", "yes_and_then_no"},
    {"empty_operands_are_refused", "mock", "empty_is_refused"},
    {"list_of_operations_has_no_end", "mock", "list_without_end"},
};

std::string plugin(const std::string& id) { return FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_" + id + ".so"; }

ProcessResult drive(const std::string& mutant, const std::string& base) {
  TestWorld world;
  world.set("FLHAL_LAYERS", "validate");
  if (mutant.empty()) return world.run({helper("drive"), plugin(base)});
  world.set("FLHAL_MUTANT", mutant);
  world.set("FLHAL_MUTANT_BASE", plugin(base));
  return world.run({helper("drive"), FLHAL_TEST_MUTANT});
}

}  // namespace

TEST_CASE("validate: a plugin that keeps its duties is found faultless", "[layers]") {
  for (const char* base : {"ram", "mock", "host"}) {
    if (!std::filesystem::exists(plugin(base))) continue;
    for (const char* mutant : {"", "none"}) {
      ProcessResult r = drive(mutant, base);
      INFO(base << " " << mutant << "\n" << r.describe());
      REQUIRE(r.ok());
      CHECK(r.out.find("\"level\":\t\"error\"") == std::string::npos);   // warnings are measured times
      CHECK(r.err.find("flhal error") == std::string::npos);
    }
  }
}

TEST_CASE("validate: names what is wrong with a wrong plugin", "[layers]") {
  for (const Row& row : kRows) {
    if (!std::filesystem::exists(plugin(row.base))) continue;     // host is left out of some builds
    ProcessResult r = drive(row.mutant, row.base);
    INFO(row.mutant << " should be found as " << row.finding << "\n" << r.describe());
    CHECK(r.ok());
    CHECK(r.out.find(std::string("\"finding\":\t\"") + row.finding + "\"") != std::string::npos);
    CHECK(r.out.find("\"whose\":\t\"flhal\"") == std::string::npos);     // the program keeps the contract
    CHECK(r.err.find("validate: ") != std::string::npos);
  }
}
