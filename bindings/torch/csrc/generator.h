// csrc/generator.h: the device's random state: Philox seed and offset, 16 bytes.
//
// Native random ops take a range of counters: flhal_philox p = take_philox(generator, device, (n + 3) / 4).
#pragma once

#include <ATen/core/Generator.h>
#include <flhal/op.h>

#include <optional>

namespace torch_fl {

const at::Generator& default_generator(c10::DeviceIndex index);   // -1: current device
at::Generator new_generator(c10::DeviceIndex index);
void seed_all(uint64_t seed);                                     // devices not counted yet get it when they appear
// Seed and first counter for a call that uses `counters` counters; the state moves past them. `generator` may be empty: the
// device's default one. Raises for a generator of another device type. Locks the generator.
flhal_philox take_philox(const std::optional<at::Generator>& generator, c10::DeviceIndex device, uint64_t counters);

}  // namespace torch_fl
