// csrc/generator.cc: the device's random state. 16 bytes: Philox seed, then the next counter, little endian.
//
// "The same seed gives the same numbers on every chip": a state moves between devices and processes as these 16 bytes.
#include "generator.h"

#include <c10/core/GeneratorImpl.h>
#include <torch/library.h>

#include <cstring>
#include <mutex>

#include "device.h"
#include "errors.h"

namespace torch_fl {
namespace {

constexpr int64_t kStateBytes = 16;

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index)
      : c10::GeneratorImpl(c10::Device(kDeviceType, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.is_contiguous() &&
                    state.numel() == kStateBytes,
                "RNG state of ", kDeviceName, " must be a contiguous torch.uint8 CPU tensor of 16 bytes (seed, offset); got ",
                state.numel(), " elements of ", state.dtype().name(), " on ", state.device());
    uint64_t words[2];
    std::memcpy(words, static_cast<const uint8_t*>(state.data()), sizeof words);
    seed_ = words[0];
    offset_ = words[1];
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::detail::empty_cpu({kStateBytes}, at::kByte, false, std::nullopt);
    const uint64_t words[2] = {seed_, offset_};
    std::memcpy(state.mutable_data_ptr(), words, sizeof words);
    return state.getIntrusivePtr();
  }
  flhal_philox take(uint64_t counters) {
    const flhal_philox philox{seed_, offset_};
    offset_ += counters;
    return philox;
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  uint64_t seed_ = c10::default_rng_seed_val, offset_ = 0;
};

struct Defaults {
  std::mutex mutex;                                   // guards what follows; taken before a generator's own mutex
  at::Generator generators[kMaxDevices];
  std::optional<uint64_t> seed;                       // of the last seed_all: devices not yet used start with it
};
Defaults& defaults() {
  static Defaults* all = new Defaults();
  return *all;
}

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  device_handle(index);
  Defaults& all = defaults();
  std::lock_guard lock(all.mutex);
  at::Generator& generator = all.generators[index];
  if (!generator.defined()) {
    generator = at::make_generator<Generator>(index);
    if (all.seed) {
      generator.set_current_seed(*all.seed);
    } else {
      generator.seed();                               // as every backend: random until manual_seed
    }
  }
  return generator;
}

void seed_all(uint64_t seed) {
  Defaults& all = defaults();
  std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (auto& generator : all.generators) {
    if (!generator.defined()) continue;
    std::lock_guard inner(generator.mutex());
    generator.set_current_seed(seed);
  }
}

at::Generator new_generator(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  device_handle(index);
  return at::make_generator<Generator>(index);
}

flhal_philox take_philox(const std::optional<at::Generator>& given, c10::DeviceIndex device, uint64_t counters) {
  const bool own = given.has_value() && given->defined();
  TORCH_CHECK(!own || given->device().type() == kDeviceType, "Expected a '", kDeviceName, "' device type for generator but found '",
              own ? c10::DeviceTypeName(given->device().type(), true) : std::string(), "'");
  const at::Generator& generator = own ? *given : default_generator(device);
  auto* impl = static_cast<Generator*>(generator.unsafeGetGeneratorImpl());
  std::lock_guard lock(impl->mutex_);
  return impl->take(counters);
}

namespace {

// How Python gets the very object: an operator, since torch turns its result into a torch.Generator.
std::optional<at::Generator> default_generator_op(int64_t index) { return default_generator(static_cast<c10::DeviceIndex>(index)); }
TORCH_LIBRARY(torch_fl, m) { m.def("default_generator(int index) -> Generator?", &default_generator_op); }

}  // namespace

}  // namespace torch_fl
