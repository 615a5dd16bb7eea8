// src/memory/host_access.h: the one way device bytes become usable by the host: alias on unified memory, stage elsewhere.
#pragma once

#include "core/stream.h"

namespace flhal {

struct HostView {
  void* host = nullptr;
  uint64_t ticket = 0;
};
// Waits for `stream`. Any number of views may be open at once; a ticket is good for one host_end.
Result<HostView> host_begin(Stream* stream, uint64_t address, uint64_t bytes, uint32_t access);
// Ends the view also when it fails.
Status host_end(Stream* stream, uint64_t ticket);
uint64_t host_views_open();             // for tests and reports

}  // namespace flhal
