// reference_plugins/host/machine.h: what this machine is, read from files alone: no thread, no library is started.
#pragma once

#include <cstdint>
#include <string>

namespace flhal::host {

struct Machine {
  uint8_t uuid[16];            // the same in every process and boot of this machine
  std::string product;         // the processor's model name
  std::string vendor;
  std::string driver;          // kernel release
  std::string fingerprint;     // changes when code compiled for this processor must be compiled again
  uint64_t memory_bytes;       // physical memory, or this process's cgroup limit when that is lower
  uint32_t vector_bytes;
};

Machine read_machine();

// A uuid that is the same for the same text; the text cannot be read back from it.
void hash_to_uuid(const std::string& text, uint8_t out[16]);

// Memory that could be taken now without swapping, within the cgroup limit. Costs some 30 us: it reads /proc.
uint64_t available_memory();

}  // namespace flhal::host
