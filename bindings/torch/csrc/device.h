// csrc/device.h: which device and stream a thread is on. Idea: one heap block per thread, found by one thread-local pointer.
//
// The current device of a thread follows the process default (activate) until the thread chooses one of its own.
// Streams of torch are small numbers: 0 is the device's default stream, n is entry n-1 of the device's stream pool.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <flhal/stream.h>

#include <string>
#include <vector>

#include "csrc/tensor_parts.h"

namespace torch_fl {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
inline constexpr const char* kDeviceName = "fl_device";
inline constexpr int kMaxDevices = 64;
inline constexpr int kStreamsPerPool = 32;   // like the CUDA backend: torch.Stream() hands them out in turn

c10::DeviceIndex device_count() noexcept;
flhal_device* device_handle(c10::DeviceIndex index);          // raises for an index out of range
[[noreturn]] void raise_no_device(const std::string& index);  // the sentence for it, with the number as the user gave it
c10::DeviceIndex checked_index(c10::Device device);           // -1 becomes the current device; raises when out of range

// What a thread keeps. Never freed before the thread ends.
struct ThreadState {
  c10::DeviceIndex chosen = -1;                               // -1: follows the process default
  flhal_stream* streams[kMaxDevices] = {};                    // current stream per device, nullptr: not asked yet
  c10::StreamId stream_ids[kMaxDevices] = {};
  TensorParts parts;                                          // for the next tensors
};
extern thread_local constinit ThreadState* t_state;
ThreadState& make_thread_state();
inline ThreadState& thread_state() {
  ThreadState* state = t_state;
  return __builtin_expect(state != nullptr, 1) ? *state : make_thread_state();
}

c10::DeviceIndex default_device();                            // of the process; resolves TORCH_FL_DEVICE at first use
void set_default_device(c10::DeviceIndex index);              // activate()
void set_device_candidates(std::vector<std::string> names);   // what an earlier activate kept: first that exists wins
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);
c10::DeviceIndex exchange_current_device(c10::DeviceIndex index);

flhal_stream* open_current_stream(ThreadState& state, c10::DeviceIndex index);
// The stream new work of this thread on device `index` belongs to. Opens the device the first time. Hot.
inline flhal_stream* current_stream(c10::DeviceIndex index) {
  ThreadState& state = thread_state();
  flhal_stream* stream = static_cast<unsigned>(index) < kMaxDevices ? state.streams[index] : nullptr;
  return __builtin_expect(stream != nullptr, 1) ? stream : open_current_stream(state, index);
}
c10::StreamId current_stream_id(c10::DeviceIndex index);
void set_current_stream(c10::DeviceIndex index, c10::StreamId id);
flhal_stream* stream_of(c10::DeviceIndex index, c10::StreamId id);
c10::StreamId next_pool_stream(c10::DeviceIndex index, int priority);   // makes it the first time round
bool device_opened(c10::DeviceIndex index) noexcept;
bool any_stream_busy() noexcept;                  // of those that this process opened; never blocks, lost and failed ones rest
void reset_device(c10::DeviceIndex index);                    // after DEVICE_LOST; all streams start anew
void clear_errors(c10::DeviceIndex index);                    // after a failed operator: its streams; after a loss: reset_device

}  // namespace torch_fl
