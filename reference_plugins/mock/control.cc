// control.cc: the gate, the counts, and losing a device on demand.
#include <algorithm>
#include <cstring>

#include "mock.h"

namespace mock {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  uint64_t permits = 0;
};
Gate& gate() {
  static auto* g = new Gate();
  return *g;
}

struct OpenDevices {
  std::mutex mutex;
  std::vector<flhal_p_device*> devices;
};
OpenDevices& open_devices() {
  static auto* o = new OpenDevices();
  return *o;
}

flhal_status control_script(const char* text) {
  auto* script = new Script();
  std::string error;
  bool good = text != nullptr ? parse_script(text, script, &error) : script_from_surroundings(nullptr, script, &error);
  if (!good) {
    delete script;
    return fail(FLHAL_E_INVALID, error);
  }
  set_script(script);
  return FLHAL_OK;
}

void control_hold() {
  std::lock_guard lock(gate().mutex);
  gate().held = true;
  gate().permits = 0;
}

void control_release() {
  std::lock_guard lock(gate().mutex);
  gate().held = false;
  gate().changed.notify_all();
}

void control_step(uint32_t n) {
  std::lock_guard lock(gate().mutex);
  gate().permits += n;
  gate().changed.notify_all();
}

void control_counts(uint32_t index, flhal_mock_counts* out, uint64_t bytes) {
  constexpr size_t kFields = sizeof(flhal_mock_counts) / sizeof(uint64_t);
  uint64_t sums[kFields] = {};
  for (uint32_t chip = 0; chip < kChips; ++chip) {
    if (index != FLHAL_MOCK_ALL_DEVICES && index != chip) continue;
    const auto* fields = reinterpret_cast<const std::atomic<uint64_t>*>(&counts(chip));
    for (size_t i = 0; i < kFields; ++i) sums[i] += fields[i].load(std::memory_order_relaxed);
  }
  memcpy(out, sums, std::min<uint64_t>(bytes, sizeof sums));
}

void control_lose(uint32_t index) {
  OpenDevices& o = open_devices();
  std::lock_guard lock(o.mutex);
  for (flhal_p_device* device : o.devices)
    if (index == FLHAL_MOCK_ALL_DEVICES || device->chip == index) device->lost = true;
}

void* control_inside(uint64_t address) {
  flhal_p_memory* m = memory_at(address);
  return m == nullptr ? nullptr : m->inside + (address - m->address);
}

}  // namespace

void gate_wait(flhal_p_stream* stream) {
  Gate& g = gate();
  std::unique_lock lock(g.mutex);
  g.changed.wait(lock, [&] { return !g.held || g.permits > 0 || stream->draining.load(); });
  if (g.held && g.permits > 0 && !stream->draining.load()) --g.permits;
}

void gate_wake() {
  std::lock_guard lock(gate().mutex);
  gate().changed.notify_all();
}

void register_device(flhal_p_device* device) {
  OpenDevices& o = open_devices();
  std::lock_guard lock(o.mutex);
  o.devices.push_back(device);
}

void unregister_device(flhal_p_device* device) {
  OpenDevices& o = open_devices();
  std::lock_guard lock(o.mutex);
  std::erase(o.devices, device);
}

const flhal_mock_control_v1 kControl = {sizeof(flhal_mock_control_v1), FLHAL_MOCK_CONTROL_VERSION, control_script, control_hold,
                                        control_release, control_step, control_counts, control_lose, control_inside};

}  // namespace mock
