// memory.cc: slabs whose visible addresses crash when touched, and the views host_begin gives.
//
// Idea: a slab is one memory file mapped twice: inaccessible at the address users see, readable and writable at one the mock
// keeps for itself. A forgotten copy in core or a framework is then a crash, not a silent success. Files are sparse: the
// 16 GB of a chip are a promise, only touched pages cost.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "mock.h"

namespace mock {
namespace {

constexpr uint64_t kGranule = 65536;

struct Registry {                       // live slabs by the address users see
  std::mutex mutex;
  std::multimap<uint64_t, flhal_p_memory*> slabs;   // chips with foreign addresses share numbers
  uint64_t next_foreign[kChips] = {0x100000000000ull, 0x100000000000ull};   // on purpose the same on both chips
};
Registry& registry() {
  static auto* r = new Registry();
  return *r;
}

struct View {
  flhal_p_memory* memory;
  uint64_t offset, bytes;
  uint32_t access;
  std::unique_ptr<char[]> host;
};
struct Views {
  std::mutex mutex;
  std::deque<View> open;
};
Views& views() {
  static auto* v = new Views();
  return *v;
}

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Both mappings; false when the system has none to give.
bool map_twice(flhal_p_memory* m, uint64_t align) {
  int file = memfd_create("flhal-mock-slab", MFD_CLOEXEC);
  if (file < 0) return false;
  if (ftruncate(file, static_cast<off_t>(m->reserved_bytes)) != 0) return close(file), false;
  // An inaccessible range with room for the alignment; the surplus on both sides goes back.
  auto* wide = static_cast<char*>(
      mmap(nullptr, m->reserved_bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (wide == MAP_FAILED) return close(file), false;
  char* start = reinterpret_cast<char*>(round_up(reinterpret_cast<uint64_t>(wide), align));
  if (start != wide) munmap(wide, static_cast<size_t>(start - wide));
  if (size_t tail = static_cast<size_t>(wide + align - start)) munmap(start + m->reserved_bytes, tail);
  void* outside = mmap(start, m->reserved_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0);
  void* inside = mmap(nullptr, m->reserved_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);   // the mappings keep it
  if (outside == MAP_FAILED || inside == MAP_FAILED) {
    munmap(start, m->reserved_bytes);
    if (inside != MAP_FAILED) munmap(inside, m->reserved_bytes);
    return false;
  }
  m->outside = start;
  m->inside = static_cast<char*>(inside);
  return true;
}

flhal_status allocate_pinned(flhal_p_device* device, flhal_p_slab_v1* slab) {
  auto* m = new flhal_p_memory{device, nullptr, nullptr, 0, slab->bytes, round_up(slab->bytes, kGranule), slab->kind};
  uint64_t align = slab->align < 4096 ? 4096 : slab->align;
  if (posix_memalign(reinterpret_cast<void**>(&m->inside), align, m->reserved_bytes) != 0) {
    delete m;
    return FLHAL_EXHAUSTED;
  }
  device->counts().live_slabs.fetch_add(1);
  slab->memory = m;
  slab->host = m->inside;
  return FLHAL_OK;
}

}  // namespace

flhal_p_memory* memory_at(uint64_t address) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto next = r.slabs.upper_bound(address);
  if (next == r.slabs.begin()) return nullptr;
  flhal_p_memory* m = std::prev(next)->second;
  return address - m->address < m->reserved_bytes ? m : nullptr;
}

namespace slots {

flhal_status memory_alloc(flhal_p_device* device, flhal_p_slab_v1* slab) {
  if (flhal_status s = slot_begin(Slot::memory_alloc, device->chip); s != FLHAL_OK) return s;
  if (flhal_status s = extensions(slab->next, "memory_alloc"); s != FLHAL_OK) return s;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: memory_alloc: the device is lost");
  if (slab->kind == FLHAL_MEM_PINNED) return allocate_pinned(device, slab);
  if (slab->kind != FLHAL_MEM_DEVICE) return fail(FLHAL_E_UNSUPPORTED, "mock: memory_alloc: no shared memory");
  uint64_t used = device->used_bytes.load();
  do {
    if (slab->bytes > device->memory_bytes - used) return FLHAL_EXHAUSTED;
  } while (!device->used_bytes.compare_exchange_weak(used, used + slab->bytes));

  auto* m = new flhal_p_memory{device, nullptr, nullptr, 0, slab->bytes, round_up(slab->bytes, kGranule), slab->kind};
  if (!map_twice(m, slab->align < kGranule ? kGranule : slab->align)) {
    device->used_bytes.fetch_sub(slab->bytes);
    delete m;
    return FLHAL_EXHAUSTED;
  }
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    switch (script().addresses) {
      case Script::Addresses::kOurs: m->address = reinterpret_cast<uint64_t>(m->outside); break;
      case Script::Addresses::kForeign:
        m->address = r.next_foreign[device->chip];
        r.next_foreign[device->chip] += m->reserved_bytes + kGranule;
        break;
      case Script::Addresses::kNone: break;
    }
    if (m->address != 0) r.slabs.emplace(m->address, m);
  }
  device->counts().live_slabs.fetch_add(1);
  device->counts().live_slab_bytes.fetch_add(slab->bytes);
  slab->memory = m;
  slab->address = m->address;
  slab->host = nullptr;
  return FLHAL_OK;
}

void memory_free(flhal_p_device* device, flhal_p_memory* m) {
  if (m->in_use.load() != 0) misuse(device->chip, "memory_free while queued work uses the slab");
  device->counts().live_slabs.fetch_sub(1);
  if (m->outside == nullptr) {
    free(m->inside);
    delete m;
    return;
  }
  if (m->address != 0) {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    auto [first, last] = r.slabs.equal_range(m->address);
    for (auto it = first; it != last; ++it) {
      if (it->second != m) continue;
      r.slabs.erase(it);
      break;
    }
  }
  device->counts().live_slab_bytes.fetch_sub(m->bytes);
  device->used_bytes.fetch_sub(m->bytes);
  munmap(m->outside, m->reserved_bytes);
  munmap(m->inside, m->reserved_bytes);
  delete m;
}

// The chip is not visible to the host: a view is a copy, and host_end writes it back.
flhal_status host_begin(flhal_p_device* device, const flhal_p_place* place, uint64_t bytes, uint32_t access, void** host) {
  if (flhal_status s = slot_begin(Slot::host_begin, device->chip); s != FLHAL_OK) return s;
  if (device->lost) return fail(FLHAL_E_DEVICE_LOST, "mock: host_begin: the device is lost");
  View view{place->memory, place->offset, bytes, access, std::make_unique<char[]>(bytes == 0 ? 1 : bytes)};
  memcpy(view.host.get(), inside_of(*place), bytes);
  *host = view.host.get();
  device->counts().live_host_views.fetch_add(1);
  Views& v = views();
  std::lock_guard lock(v.mutex);
  v.open.push_back(std::move(view));
  return FLHAL_OK;
}

flhal_status host_end(flhal_p_device* device, const flhal_p_place* place, uint64_t bytes, uint32_t access, void* host) {
  if (flhal_status s = slot_begin(Slot::host_end, device->chip); s != FLHAL_OK) return s;
  Views& v = views();
  std::lock_guard lock(v.mutex);
  for (auto it = v.open.begin(); it != v.open.end(); ++it) {
    if (it->host.get() != host) continue;   // equal ranges may be open twice
    if (it->memory != place->memory || it->offset != place->offset || it->bytes != bytes || it->access != access) break;
    if (access & FLHAL_WRITE) memcpy(inside_of(*place), it->host.get(), bytes);
    v.open.erase(it);
    device->counts().live_host_views.fetch_sub(1);
    return FLHAL_OK;
  }
  misuse(device->chip, "host_end without its host_begin");
  return fail(FLHAL_E_INVALID, "mock: host_end: no view of this range with this pointer is open");
}

}  // namespace slots
}  // namespace mock
