// script.h: what the mock has been told to do wrong. The keys are listed in README.md and in script.cc.
#pragma once

#include <flhal/plugin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace mock {

// The slots that can be told to fail, in the table's order; plan_create and plan_run belong to "ops".
#define MOCK_SLOTS(X)                                                                                              \
  X(init) X(device_count) X(device_info) X(device_open) X(memory_alloc) X(copy) X(fill) X(module_load)             \
  X(function_get) X(launch) X(memory_budget) X(host_begin) X(host_end) X(stream_create) X(stream_query)            \
  X(stream_synchronize) X(event_create) X(event_record) X(event_wait) X(event_query) X(event_synchronize)          \
  X(event_elapsed_ns) X(event_signal) X(plan_create) X(plan_run)
enum class Slot : uint32_t {
#define X(name) name,
  MOCK_SLOTS(X)
#undef X
  kCount
};
const char* slot_name(Slot slot);

struct FailRule {
  Slot slot;
  uint64_t nth;           // 1 = the next call; 0 = every call
  flhal_status code;
  bool when_run;          // fail_work: the submission is accepted, the work fails on the worker
};

struct Script {
  uint32_t delay_ms = 0;
  uint64_t reorder_seed = 0;          // 0: off
  uint64_t lose_after = 0;            // 0: never
  uint32_t lose_device = ~0u;         // which one; ~0: whichever gets there
  uint64_t memory_bytes = 0;          // 0: the chip's own
  uint64_t max_rows = 0;              // of a native matmul's result; 0: any
  uint32_t chips = 3;                 // bit 0 chip_a, bit 1 chip_b
  bool no_streams = false, no_events = false, no_kernels = false, no_ops = false, no_host_access = false;
  bool no_fp64 = false, no_int64 = false, no_timing = false;
  enum class Addresses { kOurs, kForeign, kNone } addresses = Addresses::kOurs;
  std::vector<std::string> no_op;
  std::vector<flhal_dtype> no_dtype;
  std::vector<FailRule> fails;

  mutable std::array<std::atomic<uint64_t>, static_cast<size_t>(Slot::kCount)> calls{}, runs{};
  mutable std::array<std::atomic<uint64_t>, 2> submissions{};   // per chip, for lose_after
};

// Parses a list of key=value; leaves a sentence in *error and returns false when it does not.
bool parse_script(const char* text, Script* out, std::string* error);
// Environment FLHAL_MOCK, then host->config("mock.<key>") of every key (host may be null).
bool script_from_surroundings(const flhal_host_v1* host, Script* out, std::string* error);

// The script in force; never null, never freed (a worker may still look at an old one).
const Script& script();
void set_script(Script* script);

// Counts a call (or a run on a worker) of the slot and tells which failure it is to have; FLHAL_OK mostly.
flhal_status scripted_failure(Slot slot, bool when_run);

}  // namespace mock
