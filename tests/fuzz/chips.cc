// tests/fuzz/chips.cc
#include "chips.h"

namespace flhal::fuzz {
namespace {

void must(flhal_status status) {
  if (status == FLHAL_OK) return;
  char text[4096];
  flhal_last_error(text, sizeof text, nullptr);
  std::fprintf(stderr, "the chips of the fuzzer: %s\n", text);
  std::abort();
}

const Chip* open_chips() {
  setenv("FLHAL_PLUGIN_FILES", FLHAL_FUZZ_PLUGIN_DIR "/ram.json:" FLHAL_FUZZ_PLUGIN_DIR "/mock.json", 1);
  setenv("FLHAL_KERNEL_CACHE", "off", 1);
  setenv("FLHAL_PROBE_CACHE", "off", 1);
  setenv("FLHAL_LOG_LEVEL", "error", 1);
  for (const char* name : {"FLHAL_VISIBLE_DEVICES", "TORCH_FL_VISIBLE_DEVICES", "FLHAL_MOCK", "FLHAL_ROUTE", "FLHAL_FALLBACK_POLICY"})
    unsetenv(name);
  static Chip chips[kChips];
  const char* const names[kChips] = {"ram", "chip_a"};
  for (uint32_t i = 0; i < kChips; ++i) {
    uint32_t index = 0;
    must(flhal_device_find(names[i], &index));
    chips[i].device = flhal_device_at(index);
    chips[i].stream = flhal_stream_default(chips[i].device);
    must(flhal_alloc(chips[i].stream, kArenaBytes, &chips[i].arena));
  }
  return chips;
}

}  // namespace

const Chip& chip(uint32_t i) {
  static const Chip* const chips = open_chips();
  return chips[i];
}

}  // namespace flhal::fuzz
