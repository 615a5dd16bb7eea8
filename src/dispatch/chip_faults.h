// src/dispatch/chip_faults.h: bad data that kernels compiled for the chip find (an index out of range): how core hears of it.
//
// Idea: each stream has 32 bytes on its chip, zeroed once. A kernel writes the first fault there, with its call's number;
// behind the kernel the bytes are copied into pinned memory, and looked at when the work has ended. Cost: one more small
// copy per call that can fail, and no wait.
// Threads: one stream's faults are used by the callers of the stream; `mutex` guards what they share.
#pragma once

#include <mutex>

#include "core/stream.h"
#include "kernels/kernel_plan.h"

namespace flhal {

class ChipFaults {
 public:
  ChipFaults(Stream* stream, uint64_t address, kernels::TextFault* host) : stream_(stream), address_(address), host_(host) {}
  // Before arguments(): sets where the kernel tells; gives the call's number.
  uint64_t begin(kernels::LaunchArgs* args);
  // After the launch. On a chip without queues the fault is the answer; else it poisons the stream when it is found.
  Status end(uint64_t call_number, const char* op);
  void device_closes();                 // its memory goes: nothing is looked at any more

 private:
  struct Pending;
  void look(uint64_t call_number, uint64_t sequence, const char* op);

  Stream* stream_;
  uint64_t address_;
  kernels::TextFault* host_;
  std::mutex mutex_;
  uint64_t next_ = 1;
  bool gone_ = false;
  bool told_ = false;                   // the bytes hold a fault that was told: clear them before the next call
};

Result<ChipFaults*> chip_faults(Stream* stream);   // made at the first use
void forget_chip_faults(Device* device);           // before its memory goes

}  // namespace flhal
