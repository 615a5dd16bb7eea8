// conformance/mutants/copy.cc: wrong in copies and fills that finish before they return.
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "mutant.h"

namespace flhal::mutants {
namespace {

bool on_device(const flhal_p_copy_v1* c) { return c->dst.memory != nullptr && c->src.memory != nullptr; }

// A copy as it is, with its description changed.
void (*change)(flhal_p_copy_v1*) = nullptr;
void copy_with(void (*c)(flhal_p_copy_v1*)) {
  change = c;
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    flhal_p_copy_v1 changed = *what;
    change(&changed);
    return base.copy(d, s, &changed);
  };
}

}  // namespace

MUTATION(copy_drops_the_tail) {
  copy_with([](flhal_p_copy_v1* c) { c->bytes &= ~uint64_t{3}; });
}
MUTATION(copy_writes_one_byte_more) {
  copy_with([](flhal_p_copy_v1* c) { c->bytes += c->rows == 1 && c->bytes != 0 && on_device(c); });
}
MUTATION(copy_ignores_the_source_offset) {
  copy_with([](flhal_p_copy_v1* c) { if (c->src.memory != nullptr) c->src.offset = 0; });
}
MUTATION(copy_ignores_the_pitch) {
  copy_with([](flhal_p_copy_v1* c) { c->dst_pitch = c->bytes; });
}
MUTATION(copy_refuses_longer_struct) {
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    return what->struct_size == sizeof *what ? base.copy(d, s, what) : refuse(FLHAL_E_ABI, "mutant: copy: flhal_p_copy_v1 has another size than mine");
  };
}
MUTATION(copy_of_nothing_is_refused) {
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    return what->bytes != 0 ? base.copy(d, s, what) : refuse(FLHAL_E_INVALID, "mutant: copy: 0 bytes");
  };
}
MUTATION(copy_returns_early) {
  static std::vector<std::thread> running;
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) -> flhal_status {
    if (s != nullptr || !on_device(what)) return base.copy(d, s, what);
    running.emplace_back([d, copied = *what] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      base.copy(d, nullptr, &copied);
    });
    return FLHAL_OK;
  };
  table.memory_free = [](Device d, Memory m) {
    for (std::thread& t : running) t.join();
    running.clear();
    base.memory_free(d, m);
  };
}
MUTATION(copy_reads_its_source_later) {
  static flhal_p_copy_v1 held{};
  static bool any = false;
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) -> flhal_status {
    if (any) base.copy(d, nullptr, &held);
    any = s == nullptr && what->src.memory == nullptr && what->dst.memory != nullptr;
    if (!any) return base.copy(d, s, what);
    held = *what;
    return FLHAL_OK;
  };
}
MUTATION(copies_share_one_buffer) {
  static std::vector<char> buffer(1 << 20);
  table.copy = [](Device d, Stream s, const flhal_p_copy_v1* what) {
    bool upload = what->src.memory == nullptr && what->dst.memory != nullptr && what->rows == 1 && what->bytes <= buffer.size();
    if (!upload) return base.copy(d, s, what);
    std::memcpy(buffer.data(), what->src.host, what->bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    flhal_p_copy_v1 staged = *what;
    staged.src.host = buffer.data();
    return base.copy(d, s, &staged);
  };
}
MUTATION(fill_drops_the_tail) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    return base.fill(d, s, to, n > width ? n - width : n, pattern, width);
  };
}
MUTATION(fill_takes_eight_bytes_of_the_pattern) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    return base.fill(d, s, to, n, pattern, width == 16 ? 8 : width);
  };
}
MUTATION(fill_ignores_the_offset) {
  table.fill = [](Device d, Stream s, Place to, uint64_t n, const void* pattern, uint32_t width) {
    flhal_p_place start = {to->memory, 0, to->host};
    return base.fill(d, s, &start, n, pattern, width);
  };
}

}  // namespace flhal::mutants
