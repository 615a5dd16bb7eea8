// src/memory/host_access.h: the one way device bytes become usable by the host: alias on unified memory, stage elsewhere.
#pragma once

#include "core/stream.h"

namespace flhal {

struct HostView {
  void* host = nullptr;
  uint64_t ticket = 0;
};
Result<HostView> host_begin(Stream* stream, uint64_t address, uint64_t bytes, uint32_t access);
Status host_end(Stream* stream, uint64_t ticket);

}  // namespace flhal
