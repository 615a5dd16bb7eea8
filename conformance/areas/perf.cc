// conformance/areas/perf.cc: what a call costs. These cases only warn: a slow plugin is a plugin.
//
// The limits are a hundred times what the reference plugins take on a small machine, so that a warning means something.
#include <chrono>

#include "areas/queue.h"

namespace flhal::conformance {
namespace {

// The fastest of a few rounds, in microseconds a call: what else the machine does counts as little as can be.
template <typename Call>
double fastest_us(int calls, Call call) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / calls);
  }
  return best;
}
void expect_below(Context& ctx, const char* what, double us, double limit_us) {
  if (us > limit_us) ctx.warn(fmt::format("{} takes {:.0f} us; above {:.0f} us it is what a small model spends its time with", what, us, limit_us));
}

}  // namespace

FLHAL_CASE("perf.copy.small", Profile::kSync, "FLP-091") {
  Device& device = ctx.device();
  Slab slab(device, 4096);
  uint8_t bytes[64] = {};
  expect_below(ctx, "a copy of 64 bytes to the device", fastest_us(50, [&] { device.upload(slab, 0, bytes, sizeof bytes); }), 1000);
}
FLHAL_CASE("perf.fill.small", Profile::kSync, "FLP-091") {
  Device& device = ctx.device();
  Slab slab(device, 4096);
  uint32_t pattern = 7;
  expect_below(ctx, "a fill of 4096 bytes", fastest_us(50, [&] { device.fill(slab, 0, 4096, &pattern, 4); }), 1000);
}
FLHAL_CASE("perf.copy.large", Profile::kSync, "FLP-091") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 16 << 20;
  Slab slab(device, kBytes);
  std::vector<uint8_t> host(kBytes, 1);
  expect_below(ctx, "a copy of 16 MiB to the device", fastest_us(2, [&] { device.upload(slab, 0, host.data(), kBytes); }), 200000);
}
FLHAL_CASE("perf.stream.query", Profile::kAsync, "FLP-091") {
  Device& device = queued_device(ctx);
  Queue queue(device);
  expect_below(ctx, "stream_query of an idle stream", fastest_us(100, [&] { queue.query(); }), 100);
}

}  // namespace flhal::conformance
