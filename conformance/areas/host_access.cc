// conformance/areas/host_access.cc: slots 16 and 17, the host's view of device memory.
#include <flhal/memory.h>

#include <cstring>

#include "runner/context.h"

namespace flhal::conformance {
namespace {

Device& visible_device(Context& ctx) {
  if (!ctx.plugin().has_host_access()) not_supported("the plugin has no host_begin; core stages copies");
  return ctx.device();
}

struct View {
  Device& device;
  flhal_p_place place;
  uint64_t bytes;
  uint32_t access;
  uint8_t* host = nullptr;
  bool open = false;

  View(const Slab& slab, uint64_t offset, uint64_t n, uint32_t how) : device(slab.device), place(slab.place(offset)), bytes(n), access(how) {
    void* p = nullptr;
    auto serial = device.plugin.lock();
    expect_ok(device.table.host_begin(device.handle, &place, bytes, access, &p), "host_begin");
    host = static_cast<uint8_t*>(p);
    open = true;
    FLHAL_EXPECT(host != nullptr || bytes == 0, "host_begin answered FLHAL_OK and gave no pointer");
  }
  void end() {
    open = false;
    auto serial = device.plugin.lock();
    expect_ok(device.table.host_end(device.handle, &place, bytes, access, host), "host_end");
  }
  ~View() {
    if (!open) return;
    auto serial = device.plugin.lock();
    device.table.host_end(device.handle, &place, bytes, access, host);
  }
};

}  // namespace

FLHAL_CASES() {
  for (auto [offset, bytes] : {std::pair<uint64_t, uint64_t>(0, 40000), {1, 1}, {12345, 777}, {39999, 1}}) {
    add_case(fmt::format("memory.host.reads.{}_{}", offset, bytes), Profile::kSync, "FLP-042", [offset = offset, bytes = bytes](Context& ctx) {
      Device& device = visible_device(ctx);
      Slab slab(device, 40000);
      auto content = ctx.random_bytes(40000);
      slab.write(content);
      View view(slab, offset, bytes, FLHAL_READ);
      expect_equal({view.host, view.host + bytes}, {content.begin() + static_cast<long>(offset), content.begin() + static_cast<long>(offset + bytes)},
                   fmt::format("host_begin of {} bytes at offset {}", bytes, offset));
      view.end();
      expect_equal(slab.read(), content, "the slab after a view for reading");
    });
    add_case(fmt::format("memory.host.writes.{}_{}", offset, bytes), Profile::kSync, "FLP-043", [offset = offset, bytes = bytes](Context& ctx) {
      Device& device = visible_device(ctx);
      Slab slab(device, 40000);
      auto content = ctx.random_bytes(40000), fresh = ctx.random_bytes(bytes);
      slab.write(content);
      View view(slab, offset, bytes, FLHAL_READ | FLHAL_WRITE);
      std::memcpy(view.host, fresh.data(), bytes);
      view.end();
      std::copy(fresh.begin(), fresh.end(), content.begin() + static_cast<long>(offset));
      expect_equal(slab.read(), content, fmt::format("the slab after writing {} bytes at offset {} through a view", bytes, offset));
    });
  }
  return true;
}

FLHAL_CASE("memory.host.discard_writes", Profile::kSync, "FLP-043") {
  Device& device = visible_device(ctx);
  Slab slab(device, 5000);
  auto content = ctx.random_bytes(5000);
  slab.write(ctx.random_bytes(5000));
  View view(slab, 0, 5000, FLHAL_WRITE | FLHAL_DISCARD);
  std::memcpy(view.host, content.data(), 5000);
  view.end();
  expect_equal(slab.read(), content, "the slab after a view whose old bytes were not needed");
}

FLHAL_CASE("memory.host.sees_new_content", Profile::kSync, "FLP-042") {
  Device& device = visible_device(ctx);
  Slab slab(device, 5000);
  for (int i = 0; i < 3; ++i) {
    auto content = ctx.random_bytes(5000);
    slab.write(content);
    View view(slab, 0, 5000, FLHAL_READ);
    expect_equal({view.host, view.host + 5000}, content, fmt::format("view number {}, after the slab was written again", i + 1));
    view.end();
  }
}

FLHAL_CASE("memory.host.two_views", Profile::kSync, "FLP-042 FLP-043") {
  Device& device = visible_device(ctx);
  Slab slab(device, 5000);
  auto content = ctx.random_bytes(5000);
  slab.write(content);
  View whole(slab, 0, 5000, FLHAL_READ), part(slab, 1000, 500, FLHAL_READ | FLHAL_WRITE);
  std::memset(part.host, 0x3c, 500);
  whole.end();
  part.end();
  std::fill(content.begin() + 1000, content.begin() + 1500, 0x3c);
  expect_equal(slab.read(), content, "the slab after a view for reading and one for writing ended, in the order they began");
}

FLHAL_CASE("memory.host.equal_ranges_open_twice", Profile::kSync, "FLP-043") {
  Device& device = visible_device(ctx);
  Slab slab(device, 4096);
  auto content = ctx.random_bytes(4096);
  slab.write(content);
  View reader(slab, 0, 4096, FLHAL_READ), writer(slab, 0, 4096, FLHAL_READ | FLHAL_WRITE);
  std::memset(writer.host, 0x77, 4096);
  writer.end();
  expect_equal(slab.read(), std::vector<uint8_t>(4096, 0x77), "the slab after the second of two views of the same range ended");
  reader.end();
  expect_equal(slab.read(), std::vector<uint8_t>(4096, 0x77), "the slab after the first of two views of the same range ended");
}

FLHAL_CASE("memory.host.is_the_memory", Profile::kSync, "FLP-042 FLP-029") {
  Device& device = visible_device(ctx);
  if (!device.has(FLHAL_CAP_HOST_VISIBLE)) not_supported("the device does not claim FLHAL_CAP_HOST_VISIBLE");
  Slab slab(device, 4096);
  View first(slab, 0, 4096, FLHAL_READ | FLHAL_WRITE), second(slab, 0, 4096, FLHAL_READ | FLHAL_WRITE);
  FLHAL_EXPECT(first.host == second.host, "the device claims FLHAL_CAP_HOST_VISIBLE, and two views of one place are two copies");
  if (slab.made.host != nullptr) FLHAL_EXPECT(first.host == slab.made.host, "host_begin gives another pointer than memory_alloc did");
}

FLHAL_CASE("memory.host.many_views", Profile::kSync, "FLP-042") {
  Device& device = visible_device(ctx);
  Slab slab(device, 65536);
  auto content = ctx.random_bytes(65536);
  slab.write(content);
  for (int i = 0; i < 500; ++i) {
    uint64_t offset = ctx.random()() % 65536, bytes = ctx.random()() % (65536 - offset) + 1;
    View view(slab, offset, bytes, FLHAL_READ);
    expect_equal({view.host, view.host + bytes}, {content.begin() + static_cast<long>(offset), content.begin() + static_cast<long>(offset + bytes)},
                 fmt::format("view number {} of {} bytes at offset {}", i, bytes, offset));
    view.end();
  }
}

}  // namespace flhal::conformance
