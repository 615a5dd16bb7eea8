// conformance/mutants/stream.cc: wrong in streams.
#include <cstring>
#include <map>
#include <mutex>

#include "mutant.h"

namespace flhal::mutants {

MUTATION(stream_leaves_memory) {
  table.stream_destroy = [](Stream s) {
    if (host->alloc(64, 16) == nullptr) return;
    base.stream_destroy(s);
  };
}
MUTATION(streams_are_one) {
  struct Shared { Stream stream; int users; };
  static std::map<Device, Shared> shared;
  static std::mutex mutex;
  table.stream_create = [](Device d, int32_t priority, uint32_t flags, Stream* out) -> flhal_status {
    std::lock_guard lock(mutex);
    Shared& s = shared[d];
    if (s.users == 0)
      if (flhal_status made = base.stream_create(d, priority, flags, &s.stream); made != FLHAL_OK) return made;
    ++s.users;
    *out = s.stream;
    return FLHAL_OK;
  };
  table.stream_destroy = [](Stream stream) {
    std::lock_guard lock(mutex);
    for (auto& [d, s] : shared)
      if (s.stream == stream && --s.users == 0) base.stream_destroy(stream);
  };
}
MUTATION(fill_overtakes_its_stream) {
  table.fill = [](Device d, Stream, Place to, uint64_t n, const void* pattern, uint32_t width) { return base.fill(d, nullptr, to, n, pattern, width); };
}
MUTATION(fill_waits_for_its_stream) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    flhal_status answer = base.fill(d, s, to, n, pattern, width);
    return answer == FLHAL_OK && s != nullptr ? base.stream_synchronize(s) : answer;
  };
}
MUTATION(pattern_is_read_late) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    if (s == nullptr) return base.fill(d, s, to, n, pattern, width);
    return later(d, s, to, [n, pattern, width](char* memory) {
      for (uint64_t i = 0; i < n; i += width) std::memcpy(memory + i, pattern, width);
    });
  };
  table.device_close = [](Device d) {
    forget_device(d);
    base.device_close(d);
  };
}
MUTATION(query_says_done) {
  table.stream_query = [](Stream) -> flhal_status { return FLHAL_OK; };
}
MUTATION(query_blocks) {
  table.stream_query = [](Stream s) { return base.stream_synchronize(s); };
}
MUTATION(synchronize_returns_early) {
  table.stream_synchronize = [](Stream s) {
    flhal_status now = base.stream_query(s);
    return now == FLHAL_NOT_READY ? FLHAL_OK : now;
  };
}

}  // namespace flhal::mutants
