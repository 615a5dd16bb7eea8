// csrc/fallback_random.cc: random CPU operators under the device's seed (RNG-01).
//
// The numbers are the CPU's (Mersenne twister), seeded by a hash of (seed, offset) of the device's Philox state: equal seeds give
// equal numbers on every chip and in every process, though not the numbers of a native random op.
// torch's default CPU generator is never touched: a user's CPU numbers stay what they are, whatever other threads do. Operators
// that could only draw from it are refused (Refusal::kDraws). Tried and dropped: seeding it for the length of the call and
// giving it its state back; a thread that drew CPU numbers just then got numbers of our seed.
#include "fallback_random.h"

#include <ATen/CPUGeneratorImpl.h>

#include "device.h"
#include "generator.h"

namespace torch_fl {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): the Mersenne twister takes only 32 bits of seed, so all 128 must reach them.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

void give_cpu_generator(const OpInfo& info, torch::jit::Stack* stack, c10::DeviceIndex device) {
  c10::IValue& slot = torch::jit::peek(*stack, info.generator_arg, info.written.size());
  const flhal_philox philox = take_philox(slot.toOptional<at::Generator>(), device, 1);
  slot = at::detail::createCPUGenerator(mix(philox.seed ^ mix(philox.offset)));
}

}  // namespace torch_fl
