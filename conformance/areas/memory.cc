// conformance/areas/memory.cc: slabs: sizes, alignment, addresses, running out, freeing.
#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <numeric>

#include "areas/surroundings.h"
#include "runner/context.h"

namespace flhal::conformance {
namespace {

flhal_status try_alloc(Device& device, flhal_p_slab_v1* slab) {
  auto serial = device.plugin.lock();
  return device.table.memory_alloc(device.handle, slab);
}

void expect_exhausted(Device& device, uint64_t bytes) {
  flhal_p_slab_v1 slab = slab_request(bytes, 64);
  take_error();
  flhal_status answer = try_alloc(device, &slab);
  if (answer == FLHAL_OK) { Slab given(device, slab); }
  LeftError left = take_error();
  FLHAL_EXPECT(answer == FLHAL_EXHAUSTED, "memory_alloc of {} bytes, where the largest slab has {}, answered {}; it must be FLHAL_EXHAUSTED", bytes,
               device.slab_bytes_max(), status_text(answer));
  FLHAL_EXPECT(slab.memory == nullptr, "memory_alloc answered FLHAL_EXHAUSTED and gave a handle all the same");
  FLHAL_EXPECT(!left.called, "memory_alloc left the text \"{}\" with FLHAL_EXHAUSTED; positive answers carry none", left.text);
}

// Whether every page of the range is mapped in this process, accessible or not.
bool is_mapped(uint64_t address, uint64_t bytes) {
  std::ifstream maps("/proc/self/maps");
  uint64_t covered = address;
  for (std::string line; std::getline(maps, line) && covered < address + bytes;) {
    uint64_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) == 2 && first <= covered && covered < last) covered = last;
  }
  return covered >= address + bytes;
}

}  // namespace

FLHAL_CASES() {
  for (uint64_t bytes : {1ull, 3ull, 256ull, 4095ull, 65536ull, 65537ull, 1ull << 20, (16ull << 20) + 512})
    add_case(fmt::format("memory.alloc.content.{}", bytes), Profile::kSync, "FLP-035", [bytes](Context& ctx) {
      Slab slab(ctx.device(), bytes);
      FLHAL_EXPECT(slab.made.bytes >= bytes, "memory_alloc changed the wanted {} bytes to {}", bytes, slab.made.bytes);
      slab.made.bytes = bytes;
      auto content = ctx.random_bytes(bytes);
      slab.write(content);
      expect_equal(slab.read(), content, fmt::format("a slab of {} bytes", bytes));
    });
  for (uint64_t align : {1ull, 64ull, 256ull, 4096ull, 65536ull, 1ull << 20})
    add_case(fmt::format("memory.alloc.alignment.{}", align), Profile::kSync, "FLP-036", [align](Context& ctx) {
      Device& device = ctx.device();
      std::deque<Slab> slabs;
      for (uint64_t bytes : {100ull, 4097ull, 65536ull, 300000ull}) {
        flhal_p_slab_v1 request = slab_request(bytes, align);
        flhal_status answer = try_alloc(device, &request);
        expect_ok(answer, "memory_alloc");
        slabs.emplace_back(device, request);
        FLHAL_EXPECT(request.memory != nullptr, "memory_alloc answered FLHAL_OK and left `memory` NULL");
        FLHAL_EXPECT(request.address % align == 0, "the slab of {} bytes lies at 0x{:x}, which is no multiple of the wanted {}", bytes, request.address, align);
        if (request.host != nullptr)
          FLHAL_EXPECT(reinterpret_cast<uint64_t>(request.host) % align == 0, "the host pointer {} is no multiple of the wanted {}", request.host, align);
        if (device.info.slab_alignment != 0)
          FLHAL_EXPECT(request.address % device.info.slab_alignment == 0, "the slab lies at 0x{:x}, which is no multiple of slab_alignment {}", request.address, device.info.slab_alignment);
      }
      if (!device.has(FLHAL_CAP_ADDRESSES)) ctx.warnings.clear();   // nothing to see but that it works
    });
  return true;
}

FLHAL_CASE("memory.alloc.keeps_request", Profile::kSync, "FLP-005") {
  Device& device = ctx.device();
  struct { flhal_p_slab_v1 slab; uint8_t behind[128]; } guarded;
  guarded.slab = slab_request(10000, 512);
  std::memset(guarded.behind, 0x5a, sizeof guarded.behind);
  expect_ok(try_alloc(device, &guarded.slab), "memory_alloc");
  Slab given(device, guarded.slab);
  FLHAL_EXPECT(guarded.slab.struct_size == sizeof(flhal_p_slab_v1) && guarded.slab.struct_type == FLHAL_ST_SLAB && guarded.slab.next == nullptr, "memory_alloc changed the head of the struct");
  FLHAL_EXPECT(guarded.slab.bytes == 10000 && guarded.slab.align == 512 && guarded.slab.kind == FLHAL_MEM_DEVICE, "memory_alloc changed what was asked for (bytes {}, align {}, kind {})",
               guarded.slab.bytes, guarded.slab.align, guarded.slab.kind);
  for (uint8_t b : guarded.behind) FLHAL_EXPECT(b == 0x5a, "memory_alloc wrote past the struct_size it was given");
}

FLHAL_CASE("memory.alloc.longer_struct", Profile::kSync, "FLP-006") {
  Device& device = ctx.device();
  struct { flhal_p_slab_v1 slab; uint64_t behind[8]; } longer{};
  longer.slab = slab_request(4096, 64);
  longer.slab.struct_size = sizeof longer;
  expect_ok(try_alloc(device, &longer.slab), "memory_alloc with a longer struct");
  Slab given(device, longer.slab);
  for (uint64_t b : longer.behind) FLHAL_EXPECT(b == 0, "memory_alloc wrote into the part of a longer struct that it does not know");
}

FLHAL_CASE("memory.alloc.distinct", Profile::kSync, "FLP-035") {
  Device& device = ctx.device();
  constexpr uint64_t kBytes = 20000;
  std::deque<Slab> slabs;
  std::vector<std::vector<uint8_t>> contents;
  for (int i = 0; i < 16; ++i) {
    slabs.emplace_back(device, kBytes);
    contents.push_back(ctx.random_bytes(kBytes));
    slabs.back().write(contents.back());
  }
  for (size_t i = 0; i < slabs.size(); ++i) {
    expect_equal(slabs[i].read(), contents[i], fmt::format("slab {} of 16, after the others were written", i));
    for (size_t k = 0; k < i; ++k) {
      uint64_t a = slabs[i].made.address, b = slabs[k].made.address;
      FLHAL_EXPECT(a == 0 || a + kBytes <= b || b + kBytes <= a, "two live slabs overlap: 0x{:x} and 0x{:x}, {} bytes each", a, b, kBytes);
    }
  }
}

FLHAL_CASE("memory.alloc.addresses", Profile::kSync, "FLP-037 FLP-029") {
  Device& device = ctx.device();
  Slab slab(device, 200000);
  if (device.has(FLHAL_CAP_ADDRESSES)) {
    FLHAL_EXPECT(slab.made.address != 0, "the device claims FLHAL_CAP_ADDRESSES, and memory_alloc left `address` 0");
  } else {
    FLHAL_EXPECT(slab.made.address == 0, "memory_alloc gave the address 0x{:x}, and the device does not claim FLHAL_CAP_ADDRESSES", slab.made.address);
  }
  if (device.has(FLHAL_CAP_ADDRESSES_OURS))
    FLHAL_EXPECT(is_mapped(slab.made.address, slab.made.bytes), "the device claims FLHAL_CAP_ADDRESSES_OURS, and 0x{:x} is not reserved in this process; another maker may get the same address", slab.made.address);
  FLHAL_EXPECT(slab.made.host == nullptr || device.has(FLHAL_CAP_HOST_VISIBLE), "memory_alloc gave a host pointer for device memory, and the device does not claim FLHAL_CAP_HOST_VISIBLE");
}

FLHAL_CASE("memory.alloc.host_pointer_is_the_memory", Profile::kSync, "FLP-037") {
  Device& device = ctx.device();
  Slab slab(device, 10000);
  if (slab.made.host == nullptr) not_supported("the device's memory has no host pointer");
  auto content = ctx.random_bytes(10000);
  slab.write(content);
  std::vector<uint8_t> seen(10000);
  std::memcpy(seen.data(), slab.made.host, seen.size());
  expect_equal(seen, content, "the slab's host pointer after a copy to the slab");
}

FLHAL_CASES() {
  for (auto [name, kind] : {std::pair("pinned", FLHAL_MEM_PINNED), std::pair("shared", FLHAL_MEM_SHARED)})
    add_case(fmt::format("memory.kind.{}", name), Profile::kSync, "FLP-039", [name = std::string(name), kind = kind](Context& ctx) {
      Device& device = ctx.device();
      flhal_p_slab_v1 slab = slab_request(100000, 4096, kind);
      take_error();
      flhal_status answer = try_alloc(device, &slab);
      if (answer == FLHAL_E_UNSUPPORTED) {
        expect_refused(answer, FLHAL_E_UNSUPPORTED, fmt::format("memory_alloc of {} memory", name));
        not_supported(fmt::format("the chip has no {} memory, and says so", name));
      }
      expect_ok(answer, "memory_alloc");
      Slab given(device, slab);
      FLHAL_EXPECT(slab.host != nullptr, "memory_alloc of {} memory gave no host pointer", name);
      auto content = ctx.random_bytes(100000);
      std::memcpy(slab.host, content.data(), content.size());
      Slab target(device, 100000);
      device.upload(target, 0, slab.host, content.size());
      std::memset(slab.host, 0, content.size());
      device.download(slab.host, target, 0, content.size());
      std::vector<uint8_t> back(static_cast<uint8_t*>(slab.host), static_cast<uint8_t*>(slab.host) + content.size());
      expect_equal(back, content, fmt::format("{} memory after a copy to the device and back", name));
    });
  return true;
}

FLHAL_CASE("memory.kind.unknown", Profile::kSync, "FLP-039 FLP-016") {
  Device& device = ctx.device();
  for (uint32_t kind : {3u, 77u, 0xffffffffu}) {
    flhal_p_slab_v1 slab = slab_request(4096, 64, kind);
    take_error();
    flhal_status answer = try_alloc(device, &slab);
    if (answer == FLHAL_OK) { Slab given(device, slab); }
    expect_refused(answer, FLHAL_E_UNSUPPORTED, fmt::format("memory_alloc of the kind {}, which plugin.h does not define,", kind));
  }
}

FLHAL_CASE("memory.exhausted.beyond_largest_slab", Profile::kSync, "FLP-038 FLP-017") {
  Device& device = ctx.device();
  expect_exhausted(device, device.slab_bytes_max() + (1 << 20));
}
FLHAL_CASE("memory.exhausted.huge", Profile::kSync, "FLP-038 FLP-017") {
  Device& device = ctx.device();
  for (uint64_t bytes : {uint64_t{1} << 48, uint64_t{1} << 62, ~uint64_t{0} - 65535, ~uint64_t{0}}) expect_exhausted(device, bytes);
}
FLHAL_CASE("memory.exhausted.works_afterwards", Profile::kSync, "FLP-038 FLP-018") {
  Device& device = ctx.device();
  Slab before(device, 70000);
  auto content = ctx.random_bytes(70000);
  before.write(content);
  for (int i = 0; i < 3; ++i) expect_exhausted(device, uint64_t{1} << 60);
  Slab after(device, 70000);
  after.write(content);
  expect_equal(before.read(), content, "a slab from before an allocation that did not fit");
  expect_equal(after.read(), content, "a slab from after an allocation that did not fit");
}
FLHAL_CASE("memory.exhausted.when_full", Profile::kSync, "FLP-038 FLP-028") {
  // Nothing is touched: memory that is only promised costs little.
  Device& device = ctx.device();
  uint64_t each = device.slab_bytes_free(), given = 0;
  std::deque<Slab> slabs;
  flhal_status answer = FLHAL_OK;
  while (slabs.size() < 256) {
    flhal_p_slab_v1 slab = slab_request(each, 64);
    take_error();
    answer = try_alloc(device, &slab);
    if (answer != FLHAL_OK) break;
    slabs.emplace_back(device, slab);
    given += each;
    FLHAL_EXPECT(given <= device.info.memory_bytes, "the device of {} bytes gave slabs of {} bytes in all", device.info.memory_bytes, given);
  }
  if (slabs.size() == 256) not_supported("256 slabs of the largest size do not fill this device");
  FLHAL_EXPECT(answer == FLHAL_EXHAUSTED, "memory_alloc answered {} when the device was full; it must be FLHAL_EXHAUSTED", status_text(answer));
  FLHAL_EXPECT(!slabs.empty(), "the device cannot give a single slab of {} bytes, which it says it has", each);
  slabs.pop_back();
  flhal_p_slab_v1 again = slab_request(each, 64);
  answer = try_alloc(device, &again);
  if (answer == FLHAL_OK) { Slab given_again(device, again); }
  FLHAL_EXPECT(answer == FLHAL_OK, "one slab of {} bytes was freed, and the next memory_alloc of that size answered {}", each, status_text(answer));
}

FLHAL_CASE("memory.free.gives_back", Profile::kSync, "FLP-040") {
  Device& device = ctx.device();
  uint64_t each = device.slab_bytes_free(), total = 0;
  for (int i = 0; i < 100 && total < 2 * device.info.memory_bytes + each; ++i, total += each) {
    flhal_p_slab_v1 slab = slab_request(each, 64);
    flhal_status answer = try_alloc(device, &slab);
    FLHAL_EXPECT(answer == FLHAL_OK, "slabs of {} bytes were allocated and freed {} times; then memory_alloc answered {}", each, i, status_text(answer));
    Slab given(device, slab);
  }
}

FLHAL_CASE("memory.free.any_order", Profile::kSync, "FLP-040 FLP-035") {
  Device& device = ctx.device();
  std::vector<std::unique_ptr<Slab>> slabs;
  std::vector<std::vector<uint8_t>> contents;
  for (int i = 0; i < 24; ++i) {
    uint64_t bytes = 1000 + ctx.random()() % 100000;
    slabs.push_back(std::make_unique<Slab>(device, bytes));
    contents.push_back(ctx.random_bytes(bytes));
    slabs.back()->write(contents.back());
  }
  std::vector<size_t> order(slabs.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), ctx.random());
  for (size_t n = 0; n < order.size(); ++n) {
    slabs[order[n]].reset();
    if (n % 6 == 5)
      for (size_t i = 0; i < slabs.size(); ++i)
        if (slabs[i] != nullptr) expect_equal(slabs[i]->read(), contents[i], fmt::format("slab {}, after {} others were freed", i, n + 1));
  }
}

FLHAL_CASE("memory.free.cycles_are_flat", Profile::kSync, "FLP-040") {
  Device& device = ctx.device();
  auto cycle = [&] {
    Slab slab(device, 1 << 20);
    uint8_t pattern = 7;
    device.fill(slab, 0, 1 << 20, &pattern, 1);
  };
  for (int i = 0; i < 20; ++i) cycle();
  uint64_t before = resident_bytes(), heap = heap_bytes();
  for (int i = 0; i < 200; ++i) cycle();
  uint64_t after = resident_bytes();
  FLHAL_EXPECT(after < before + (64ull << 20), "200 times allocating, filling and freeing 1 MiB made the process {} MiB larger", (after - before) >> 20);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
  FLHAL_EXPECT(grown < 200 * 256, "200 times allocating and freeing leave {} bytes on the heap", grown);
}

}  // namespace flhal::conformance
