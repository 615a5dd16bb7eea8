// tests/host_plugin/memory_test.cc: entry, device facts, slabs, copies and fills of the host plugin.
#include <flhal/memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <numeric>

#include "host_plugin/loaded_plugin.h"

using namespace host_test;

namespace {

size_t thread_count() {
  size_t n = 0;
  for (auto& entry : std::filesystem::directory_iterator("/proc/self/task")) (void)entry, ++n;
  return n;
}

struct Slab {
  LoadedPlugin& p;
  flhal_p_slab_v1 slab{};
  explicit Slab(LoadedPlugin& plugin, uint64_t bytes, uint64_t align = 0) : p(plugin) {
    slab.struct_size = sizeof slab, slab.struct_type = FLHAL_ST_SLAB, slab.bytes = bytes, slab.align = align;
    REQUIRE(p.table->memory_alloc(p.device, &slab) == FLHAL_OK);
  }
  ~Slab() { p.table->memory_free(p.device, slab.memory); }
  unsigned char* bytes() { return static_cast<unsigned char*>(slab.host); }
  flhal_p_place place(uint64_t offset = 0) { return {slab.memory, offset, nullptr}; }
};

}  // namespace

TEST_CASE("host plugin: asking what it is starts no thread and loads no oneDNN", "[host_plugin]") {
  // Goal: FLHAL_PLUGIN_FORK_SAFE_PROBE is true. Method: count threads and look at the mapped files around the probe.
  const size_t before = thread_count();
  flhal_plugin_info_v1 info{};
  info.struct_size = sizeof info;
  REQUIRE(LoadedPlugin::entry()(LoadedPlugin::host(), &info) == FLHAL_OK);
  CHECK(std::string(info.id) == "host");
  CHECK((info.flags & FLHAL_PLUGIN_FORK_SAFE_PROBE) != 0);
  CHECK(std::strlen(info.build_id) == 40);
  flhal_init_v1 init{sizeof init, FLHAL_ST_INIT, nullptr, 0, 0};
  flhal_p_plugin* plugin = nullptr;
  REQUIRE(info.table->init(LoadedPlugin::host(), &init, &plugin) == FLHAL_OK);
  uint32_t n = 0;
  CHECK(info.table->device_count(plugin, &n) == FLHAL_OK);
  CHECK(n == 1);
  flhal_p_device_info_v1 d{};
  d.struct_size = sizeof d;
  CHECK(info.table->device_info(plugin, 0, &d) == FLHAL_OK);
  CHECK(std::string(d.chip) == "host");
  CHECK(d.device_class == FLHAL_DEVICE_CLASS_HOST);
  CHECK(std::string(d.dialects) == FLHAL_DIALECT_HOST " " FLHAL_DIALECT_HOST_ELF);
  CHECK(std::strlen(d.product) > 0);
  CHECK(d.memory_bytes <= static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  CHECK(d.memory_bytes > (64u << 20));
  flhal_p_device_info_v1 again{};
  again.struct_size = sizeof again;
  CHECK(info.table->device_info(plugin, 0, &again) == FLHAL_OK);
  CHECK(std::memcmp(d.uuid, again.uuid, 16) == 0);
  info.table->shutdown(plugin);
  CHECK(thread_count() == before);
}

TEST_CASE("host plugin: a shorter info struct is filled up to its size and not past it", "[host_plugin]") {
  LoadedPlugin p;
  struct { flhal_p_device_info_v1 info; } room;
  std::memset(&room, 0x77, sizeof room);
  room.info.struct_size = offsetof(flhal_p_device_info_v1, caps);
  CHECK(p.table->device_info(p.plugin, 0, &room.info) == FLHAL_OK);
  CHECK(std::string(room.info.chip) == "host");
  CHECK(room.info.caps == 0x7777777777777777ull);
  CHECK(p.table->device_info(p.plugin, 1, &room.info) == FLHAL_E_INVALID);
  CHECK(LoadedPlugin::last_error() == "host: there is no device 1; the one device is 0");
}

TEST_CASE("host plugin: slabs are aligned, writable and separate", "[host_plugin][memory]") {
  LoadedPlugin p;
  Slab a(p, 1), b(p, 70000), c(p, 5u << 20, 4u << 20);
  CHECK(a.slab.address % 65536 == 0);
  CHECK(b.slab.address % 65536 == 0);
  CHECK(c.slab.address % (4u << 20) == 0);
  CHECK(a.slab.host == reinterpret_cast<void*>(a.slab.address));
  std::memset(b.bytes(), 1, 70000);
  std::memset(c.bytes(), 2, 5u << 20);
  CHECK(a.bytes()[0] == 0);
  CHECK(b.bytes()[69999] == 1);
}

TEST_CASE("host plugin: more than the machine has is exhausted, without a text", "[host_plugin][memory]") {
  LoadedPlugin p;
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab, slab.bytes = 1ull << 46;
  CHECK(p.table->memory_alloc(p.device, &slab) == FLHAL_EXHAUSTED);
  uint64_t free_bytes = 0, total = 0;
  CHECK(p.table->memory_budget(p.device, &free_bytes, &total) == FLHAL_OK);
  CHECK(free_bytes > 0);
  CHECK(free_bytes <= total);
  slab.bytes = 0;
  CHECK(p.table->memory_alloc(p.device, &slab) == FLHAL_E_INVALID);
}

TEST_CASE("host plugin: a freed slab counts no more", "[host_plugin][memory]") {
  LoadedPlugin p;
  uint64_t free_bytes = 0, total = 0;
  p.table->memory_budget(p.device, &free_bytes, &total);
  const uint64_t piece = (total / 2 + 65536) / 65536 * 65536;   // two of them exceed the machine
  flhal_p_slab_v1 slab{};
  slab.struct_size = sizeof slab, slab.bytes = piece;
  flhal_status first = p.table->memory_alloc(p.device, &slab);
  if (first != FLHAL_OK) return;   // the machine is busy: the first one is refused too, which is right
  flhal_p_slab_v1 second{};
  second.struct_size = sizeof second, second.bytes = piece;
  CHECK(p.table->memory_alloc(p.device, &second) == FLHAL_EXHAUSTED);
  p.table->memory_free(p.device, slab.memory);
  CHECK(p.table->memory_alloc(p.device, &second) == FLHAL_OK);
  p.table->memory_free(p.device, second.memory);
}

TEST_CASE("host plugin: copies move exactly the bytes asked for, small and in parallel", "[host_plugin][copy]") {
  LoadedPlugin p;
  const uint64_t bytes = GENERATE(uint64_t{0}, uint64_t{1}, uint64_t{4097}, uint64_t{(1u << 20) + 3}, uint64_t{(5u << 20) + 7});
  std::vector<unsigned char> source(bytes + 2), back(bytes + 2, 9);
  std::iota(source.begin(), source.end(), 0);
  Slab slab(p, bytes + 64);
  flhal_p_copy_v1 in{sizeof in, FLHAL_ST_COPY, nullptr, slab.place(5), {nullptr, 0, source.data() + 1}, bytes, 1, 0, 0};
  CHECK(p.table->copy(p.device, nullptr, &in) == FLHAL_OK);
  flhal_p_copy_v1 out{sizeof out, FLHAL_ST_COPY, nullptr, {nullptr, 0, back.data() + 1}, slab.place(5), bytes, 1, 0, 0};
  CHECK(p.table->copy(p.device, nullptr, &out) == FLHAL_OK);
  CHECK(std::equal(source.begin() + 1, source.end() - 1, back.begin() + 1));
  CHECK(back.front() == 9);
  CHECK(back.back() == 9);
}

TEST_CASE("host plugin: rectangles leave the gaps alone", "[host_plugin][copy]") {
  LoadedPlugin p;
  const uint64_t rows = GENERATE(uint64_t{3}, uint64_t{2000});
  const uint64_t width = 700, dst_pitch = 1000, src_pitch = 900;
  std::vector<unsigned char> source(rows * src_pitch), target(rows * dst_pitch, 9);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i % 251);
  flhal_p_copy_v1 c{sizeof c, FLHAL_ST_COPY, nullptr, {nullptr, 0, target.data()}, {nullptr, 0, source.data()}, width, rows,
                    dst_pitch, src_pitch};
  REQUIRE(p.table->copy(p.device, nullptr, &c) == FLHAL_OK);
  bool right = true;
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t i = 0; i < dst_pitch; ++i)
      right = right && target[r * dst_pitch + i] == (i < width ? source[r * src_pitch + i] : 9);
  CHECK(right);
}

TEST_CASE("host plugin: fill writes every pattern size, small and in parallel", "[host_plugin][copy]") {
  LoadedPlugin p;
  const uint32_t width = GENERATE(1u, 2u, 4u, 8u, 16u);
  const uint64_t bytes = GENERATE(uint64_t{16}, uint64_t{4096 + 48}, uint64_t{(3u << 20) + 16});
  unsigned char pattern[16];
  for (int i = 0; i < 16; ++i) pattern[i] = static_cast<unsigned char>(17 * i + 1);
  Slab slab(p, bytes + 32);
  flhal_p_place place = slab.place(16);
  REQUIRE(p.table->fill(p.device, nullptr, &place, bytes, pattern, width) == FLHAL_OK);
  bool right = slab.bytes()[15] == 0 && slab.bytes()[16 + bytes] == 0;
  for (uint64_t i = 0; i < bytes; ++i) right = right && slab.bytes()[16 + i] == pattern[i % width];
  CHECK(right);
  CHECK(p.table->fill(p.device, nullptr, &place, 12, pattern, 3) == FLHAL_E_INVALID);
}

TEST_CASE("host plugin: the host sees slabs as they are", "[host_plugin][memory]") {
  LoadedPlugin p;
  Slab slab(p, 256);
  flhal_p_place place = slab.place(100);
  void* host = nullptr;
  CHECK(p.table->host_begin(p.device, &place, 10, FLHAL_READ | FLHAL_WRITE, &host) == FLHAL_OK);
  CHECK(host == slab.bytes() + 100);
  CHECK(p.table->host_end(p.device, &place, 10, FLHAL_WRITE, host) == FLHAL_OK);
}
