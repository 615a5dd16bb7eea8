// conformance/runner/context.cc: starting, sharing and closing the plugin under test.
#include "runner/context.h"

#include <algorithm>
#include <utility>

namespace flhal::conformance {

Context::~Context() { close(); }

Plugin& Context::plugin() {
  if (plugin_ == nullptr) plugin_ = std::make_unique<Plugin>(asked_.plugin_path);
  return *plugin_;
}

flhal_p_plugin* Context::handle() {
  if (handle_ == nullptr) handle_ = plugin().start();
  return handle_;
}

Device& Context::device(uint32_t index) {
  auto& device = devices_[index];
  if (device == nullptr) {
    flhal_p_plugin* started = handle();
    try {
      device = std::make_unique<Device>(plugin(), started, index);
    } catch (...) {
      devices_.erase(index);
      throw;
    }
  }
  return *device;
}

uint32_t Context::device_count() {
  uint32_t count = 0;
  flhal_p_plugin* started = handle();
  auto serial = plugin().lock();
  expect_ok(plugin().table().device_count(started, &count), "device_count");
  return count;
}

void Context::close() {
  devices_.clear();
  if (handle_ != nullptr) plugin_->stop(std::exchange(handle_, nullptr));
}

void Context::need_kernels() {
  if (plugin().has_kernels()) return;
  if (claims(Profile::kKernel)) fail("the profile kernel needs the slots 11 to 14, and launch is empty");
  not_supported("the plugin has no slots 11 to 14");
}
void Context::need_streams() {
  if (plugin().has_streams()) return;
  if (claims(Profile::kAsync)) fail("the profile async needs the slots 18 to 28, and stream_create is empty");
  not_supported("the plugin has no slots 18 to 28");
}
void Context::need_ops() {
  if (plugin().ops() != nullptr) return;
  if (claims(Profile::kOps)) fail("the profile ops needs the optional table \"ops\", and optional_table gave none");
  not_supported("the plugin has no table \"ops\"");
}

std::vector<uint8_t> Context::random_bytes(uint64_t n) {
  std::vector<uint8_t> bytes(n);
  for (uint64_t i = 0; i < n; i += 8) {
    uint64_t word = random_();
    for (uint64_t k = i; k < std::min(n, i + 8); ++k, word >>= 8) bytes[k] = static_cast<uint8_t>(word);
  }
  return bytes;
}

void Context::begin_case(const std::string& id) {
  warnings.clear();
  take_error();
  std::seed_seq seed(id.begin(), id.end());
  uint32_t words[2];
  seed.generate(words, words + 2);
  random_.seed(asked_.seed * 0x9e3779b97f4a7c15ull ^ (uint64_t{words[0]} << 32 | words[1]));
}

void expect_equal(const std::vector<uint8_t>& got, const std::vector<uint8_t>& wanted, const std::string& what) {
  FLHAL_EXPECT(got.size() == wanted.size(), "internal: {} has {} bytes, {} are compared", what, got.size(), wanted.size());
  auto at = std::mismatch(got.begin(), got.end(), wanted.begin());
  if (at.first == got.end()) return;
  uint64_t first = static_cast<uint64_t>(at.first - got.begin()), count = 0;
  for (size_t i = first; i < got.size(); ++i) count += got[i] != wanted[i];
  fail(fmt::format("{}: byte {} of {} is 0x{:02x}, it must be 0x{:02x}; {} bytes differ", what, first, got.size(), *at.first, *at.second, count));
}

}  // namespace flhal::conformance
