// csrc/device.cc: the thread's current device and streams, the process's default device, the pool of streams per device.
//
// Threads: ThreadState belongs to its thread; the registry of states exists so that a device reset can forget their streams.
#include "device.h"

#include <flhal/flhal.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "config.h"
#include "errors.h"

namespace torch_fl {

namespace {

std::atomic<int> g_default{-1};
std::mutex g_mutex;                                   // guards what follows; never held during calls that need the GIL
std::vector<std::string> g_candidates;
std::vector<ThreadState*> g_states;

struct StreamPool {
  std::atomic<flhal_stream*> streams[2 * kStreamsPerPool] = {};
  std::atomic<uint32_t> next[2] = {};
};
StreamPool g_pools[kMaxDevices];
std::atomic<bool> g_opened[kMaxDevices];

// Frees the thread's state when the thread ends. Apart from t_state so that the hot pointer stays a plain word.
struct StateOwner {
  ThreadState* state = nullptr;
  ~StateOwner() {
    if (state == nullptr) return;
    t_state = nullptr;
    std::lock_guard lock(g_mutex);
    g_states.erase(std::remove(g_states.begin(), g_states.end(), state), g_states.end());
    delete state;
  }
};


}  // namespace

thread_local constinit ThreadState* t_state = nullptr;

ThreadState& make_thread_state() {
  static thread_local StateOwner owner;
  t_state = new ThreadState();
  owner.state = t_state;
  std::lock_guard lock(g_mutex);
  g_states.push_back(t_state);
  return *t_state;
}

c10::DeviceIndex device_count() noexcept {
  static std::atomic<int> counted{-1};                // frozen at the first count; a forked child keeps the number
  int n = counted.load(std::memory_order_relaxed);
  if (n < 0) {
    n = static_cast<int>(std::min<uint32_t>(flhal_device_count(), kMaxDevices));
    counted.store(n, std::memory_order_relaxed);
  }
  return static_cast<c10::DeviceIndex>(n);
}

void raise_no_device(const std::string& index) {
  const int n = device_count();
  if (n == 0) flhal_device_at(0), raise_status(FLHAL_E_NOT_FOUND, "device index out of range");   // with the search report
  TORCH_CHECK(false, "torch_fl: there is no device ", index, ": ", n, n == 1 ? " device was" : " devices were", " found, counted from 0");
}

flhal_device* device_handle(c10::DeviceIndex index) {
  if (index < 0) raise_no_device(std::to_string(int{index}));
  device_count();
  flhal_device* device = flhal_device_at(static_cast<uint32_t>(static_cast<int>(index)));
  if (device == nullptr) raise_status(FLHAL_E_INVALID, "device index out of range");
  return device;
}

c10::DeviceIndex checked_index(c10::Device device) {
  TORCH_CHECK(device.type() == kDeviceType, "torch_fl: expected a device of type ", kDeviceName, ", got ", device.str());
  if (!device.has_index()) return current_device();
  device_handle(device.index());
  return device.index();
}

// Once a process, when it first needs a default. Data would otherwise land on another chip than the user chose, without a word.
static void warn_of_missing_choice(const std::string& name) {
  flhal_device_info info{};
  info.struct_size = sizeof info;
  check(flhal_device_get_info(device_handle(0), &info), "flhal_device_get_info");
  TORCH_WARN("torch_fl: '", name, "', which `torch-fl activate` keeps as the default device, is not there; '", info.name,
             "' is used. `torch-fl scan` shows why, `torch-fl activate --clear` forgets the choice");
}

c10::DeviceIndex default_device() {
  int chosen = g_default.load(std::memory_order_acquire);
  if (__builtin_expect(chosen >= 0, 1)) return static_cast<c10::DeviceIndex>(chosen);
  if (device_count() == 0) device_handle(0);          // raises with the search report
  const std::string named = config_text("device");
  uint32_t found = 0;
  if (!named.empty()) {
    TORCH_CHECK(flhal_device_find(named.c_str(), &found) == FLHAL_OK, "TORCH_FL_DEVICE='", named, "': ", last_error_text());
  } else {
    std::vector<std::string> candidates;
    {
      std::lock_guard lock(g_mutex);
      candidates = g_candidates;
    }
    bool there = candidates.empty();
    for (const auto& name : candidates) {
      if ((there = flhal_device_find(name.c_str(), &found) == FLHAL_OK)) break;
      found = 0;
    }
    if (!there) warn_of_missing_choice(candidates.back());
  }
  int unset = -1;
  g_default.compare_exchange_strong(unset, static_cast<int>(found), std::memory_order_acq_rel);
  return static_cast<c10::DeviceIndex>(g_default.load(std::memory_order_acquire));
}

void set_default_device(c10::DeviceIndex index) {
  device_handle(index);
  g_default.store(index, std::memory_order_release);
  thread_state().chosen = -1;
}

void set_device_candidates(std::vector<std::string> names) {
  std::lock_guard lock(g_mutex);
  g_candidates = std::move(names);
}

c10::DeviceIndex current_device() {
  ThreadState& state = thread_state();
  return state.chosen >= 0 ? state.chosen : default_device();
}

// Choosing what is the default anyway keeps following the default: guards that restore the device must not pin it.
void set_current_device(c10::DeviceIndex index) {
  if (index < 0) return;
  ThreadState& state = thread_state();
  if (state.chosen == index) return;
  device_handle(index);
  state.chosen = index == default_device() ? c10::DeviceIndex(-1) : index;
}

c10::DeviceIndex exchange_current_device(c10::DeviceIndex index) {
  const c10::DeviceIndex before = current_device();
  if (index >= 0 && index != before) set_current_device(index);
  return before;
}

flhal_stream* stream_of(c10::DeviceIndex index, c10::StreamId id) {
  flhal_device* device = device_handle(index);
  flhal_stream* stream = nullptr;
  if (id == 0) {
    stream = flhal_stream_default(device);
    if (stream == nullptr) raise_status(flhal_last_error(nullptr, 0, nullptr), "flhal_stream_default");
    g_opened[index].store(true, std::memory_order_relaxed);
  } else {
    TORCH_CHECK(id > 0 && id <= 2 * kStreamsPerPool, "torch_fl: stream id ", id, " is not one of this process's streams (0 .. ",
                2 * kStreamsPerPool, ")");
    stream = g_pools[index].streams[id - 1].load(std::memory_order_acquire);
    TORCH_CHECK(stream != nullptr, "torch_fl: stream ", id, " of ", kDeviceName, ":", int(index), " was never created");
  }
  return stream;
}

flhal_stream* open_current_stream(ThreadState& state, c10::DeviceIndex index) {
  device_handle(index);
  flhal_stream* stream = stream_of(index, state.stream_ids[index]);
  state.streams[index] = stream;
  return stream;
}

c10::StreamId current_stream_id(c10::DeviceIndex index) {
  device_handle(index);
  return thread_state().stream_ids[index];
}

void set_current_stream(c10::DeviceIndex index, c10::StreamId id) {
  device_handle(index);
  ThreadState& state = thread_state();
  if (id != 0) stream_of(index, id);                  // raises for an unknown one
  state.stream_ids[index] = id;
  state.streams[index] = nullptr;                     // asked again by the next call; the default one may open the device
}

c10::StreamId next_pool_stream(c10::DeviceIndex index, int priority) {
  flhal_device* device = device_handle(index);
  StreamPool& pool = g_pools[index];
  const int kind = priority < 0 ? 1 : 0;
  const uint32_t turn = pool.next[kind].fetch_add(1, std::memory_order_relaxed) % kStreamsPerPool;
  auto& slot = pool.streams[kind * kStreamsPerPool + turn];
  if (slot.load(std::memory_order_acquire) == nullptr) {
    flhal_stream* made = nullptr;
    check(flhal_stream_create(device, priority, &made), "flhal_stream_create");
    g_opened[index].store(true, std::memory_order_relaxed);
    flhal_stream* expected = nullptr;
    if (!slot.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) flhal_stream_release(made);
  }
  return static_cast<c10::StreamId>(kind * kStreamsPerPool + turn + 1);
}

bool device_opened(c10::DeviceIndex index) noexcept {
  return static_cast<unsigned>(index) < kMaxDevices && g_opened[index].load(std::memory_order_relaxed);
}

bool any_stream_busy() noexcept {
  const int n = device_count();
  for (int index = 0; index < n; ++index) {
    if (!device_opened(static_cast<c10::DeviceIndex>(index))) continue;
    flhal_device* device = flhal_device_at(static_cast<uint32_t>(index));
    flhal_stream* main = device ? flhal_stream_default(device) : nullptr;
    if (main && flhal_stream_query(main) == FLHAL_NOT_READY) return true;
    for (auto& slot : g_pools[index].streams) {
      flhal_stream* stream = slot.load(std::memory_order_acquire);
      if (stream && flhal_stream_query(stream) == FLHAL_NOT_READY) return true;
    }
  }
  return false;
}

void reset_device(c10::DeviceIndex index) {
  check(flhal_device_reset_error(device_handle(index)), "flhal_device_reset_error");
  std::lock_guard lock(g_mutex);
  for (ThreadState* state : g_states) {
    state->stream_ids[index] = 0;
    state->streams[index] = nullptr;
  }
  for (auto& slot : g_pools[index].streams) slot.store(nullptr, std::memory_order_release);
}

void clear_errors(c10::DeviceIndex index) {
  flhal_device* device = device_handle(index);
  flhal_device_info info{};
  info.struct_size = sizeof info;
  check(flhal_device_get_info(device, &info), "flhal_device_get_info");
  if (info.state == FLHAL_DEVICE_STATE_LOST) return reset_device(index);
  if (!device_opened(index)) return;                  // nothing ran there
  check(flhal_stream_clear_error(stream_of(index, 0)), "flhal_stream_clear_error");
  for (auto& slot : g_pools[index].streams) {
    if (flhal_stream* stream = slot.load(std::memory_order_acquire)) check(flhal_stream_clear_error(stream), "flhal_stream_clear_error");
  }
}

}  // namespace torch_fl
