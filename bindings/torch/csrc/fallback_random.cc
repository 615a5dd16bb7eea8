// csrc/fallback_random.cc: random CPU operators under the device's seed (RNG-01).
//
// The numbers are the CPU's (Mersenne twister), seeded by a hash of (seed, offset) of the device's Philox state: equal seeds give
// equal numbers on every chip and in every process, though not the numbers of a native random op.
// Threads: operators without a Generator argument share torch's default CPU generator for a moment; a thread that draws CPU
// numbers just then gets numbers of our seed. Considered: running them on a private generator; torch gives no way to pass one.
#include "fallback_random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

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

std::mutex& default_generator_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

}  // namespace

RandomScope::RandomScope(const OpInfo& info, const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DeviceIndex device) {
  if (info.generator_arg < 0 && !info.draws) return;
  std::optional<at::Generator> given;
  c10::IValue* slot = nullptr;
  if (info.generator_arg >= 0) {
    slot = &torch::jit::peek(*stack, info.generator_arg, op.schema().arguments().size());
    given = slot->toOptional<at::Generator>();
  }
  const flhal_philox philox = take_philox(given, device, 1);
  const uint64_t seed = mix(philox.seed ^ mix(philox.offset));
  if (slot != nullptr) {
    *slot = at::detail::createCPUGenerator(seed);
    return;
  }
  default_generator_mutex().lock();
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(cpu.mutex());
  state_before_ = cpu.get_state();
  cpu.set_current_seed(seed);
}

RandomScope::~RandomScope() {
  if (!state_before_.defined()) return;
  {
    at::Generator cpu = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(cpu.mutex());
    cpu.set_state(state_before_);
  }
  default_generator_mutex().unlock();
}

}  // namespace torch_fl
