// conformance/areas/device.cc: counting, describing, opening and closing.
#include <cstring>
#include <set>

#include "areas/surroundings.h"
#include "runner/context.h"
#include "runner/groups.h"
#include "runner/json.h"

namespace flhal::conformance {
namespace {

flhal_p_device_info_v1 info_of(Context& ctx, uint32_t i) {
  flhal_p_device_info_v1 info = empty_device_info();
  flhal_p_plugin* handle = ctx.handle();
  auto serial = ctx.plugin().lock();
  expect_ok(ctx.plugin().table().device_info(handle, i, &info), "device_info");
  return info;
}

std::string text(const char* s) { return s != nullptr ? s : "(null)"; }

// Everything of an info that has to stay, in one string.
std::string fingerprint(const flhal_p_device_info_v1& i) {
  std::string s(reinterpret_cast<const char*>(i.uuid), sizeof i.uuid);
  for (const char* t : {i.chip, i.product, i.vendor, i.driver, i.compute_capability, i.pci_address, i.fingerprint, i.dialects}) s += "|" + text(t);
  return s + fmt::format("|{:x}|{}|{}|{}|{}", i.caps, i.memory_bytes, i.largest_slab_bytes, i.slab_alignment, i.device_class);
}

void each_device(Context& ctx, const std::function<void(uint32_t, const flhal_p_device_info_v1&)>& look) {
  uint32_t count = ctx.device_count();
  FLHAL_EXPECT(count > 0, "the plugin finds no device on this machine; the suite needs one");
  for (uint32_t i = 0; i < count; ++i) look(i, info_of(ctx, i));
}

}  // namespace

FLHAL_CASE("device.count.at_least_one", Profile::kSync, "FLP-025") {
  FLHAL_EXPECT(ctx.device_count() > 0, "the plugin finds no device on this machine; the suite needs one");
}

FLHAL_CASE("device.count.same_each_time", Profile::kSync, "FLP-025") {
  uint32_t first = ctx.device_count();
  for (int i = 0; i < 50; ++i) {
    if (i == 25) ctx.device();
    uint32_t now = ctx.device_count();
    FLHAL_EXPECT(now == first, "device_count answered {} at call {}, {} before; it is fixed until shutdown", now, i + 2, first);
  }
}

FLHAL_CASE("device.count.same_after_restart", Profile::kSync, "FLP-025") {
  uint32_t first = ctx.device_count();
  ctx.close();
  uint32_t again = ctx.device_count();
  FLHAL_EXPECT(again == first, "device_count answered {} before shutdown and {} after the next init", first, again);
}

FLHAL_CASE("device.info.same_each_time", Profile::kSync, "FLP-026") {
  std::vector<std::string> first;
  each_device(ctx, [&](uint32_t, const flhal_p_device_info_v1& info) { first.push_back(fingerprint(info)); });
  for (int round = 0; round < 4; ++round) {
    if (round == 1) ctx.device();
    if (round == 3) ctx.close();
    each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
      FLHAL_EXPECT(i < first.size() && fingerprint(info) == first[i],
                   "device_info of index {} describes another chip than before ({}); an index never changes its meaning", i, text(info.chip));
    });
  }
}

FLHAL_CASE("device.info.uuid_not_zero", Profile::kSync, "FLP-026") {
  static const uint8_t kZero[16] = {};
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(std::memcmp(info.uuid, kZero, 16) != 0, "the uuid of device {} is zero; it identifies the chip across processes", i);
  });
}

FLHAL_CASE("device.info.uuid_unique", Profile::kSync, "FLP-026") {
  std::set<std::string> seen;
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(seen.insert(std::string(reinterpret_cast<const char*>(info.uuid), 16)).second, "device {} has the uuid of another device", i);
  });
}

FLHAL_CASE("device.info.uuid_same_in_every_process", Profile::kSync, "FLP-026") {
  std::vector<std::string> here, there;
  each_device(ctx, [&](uint32_t, const flhal_p_device_info_v1& info) {
    std::string hex;
    for (uint8_t byte : info.uuid) hex += fmt::format("{:02x}", byte);
    here.push_back(hex);
  });
  std::string ended;
  auto lines = ask_child(own_path(), {"describe", "--plugin", ctx.plugin().path()}, 8000, &ended);
  FLHAL_EXPECT(ended.empty() && !lines.empty(), "a second process that describes the plugin {}", ended);
  Json facts = Json::parse(lines.back());
  const cJSON* item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(facts.get(), "devices")) there.push_back(json_text(item, "uuid"));
  FLHAL_EXPECT(here.size() == there.size(), "this process sees {} devices, another one {}", here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i)
    FLHAL_EXPECT(here[i] == there[i], "device {} has the uuid {} here and {} in another process", i, here[i], there[i]);
}

FLHAL_CASE("device.info.chip_name", Profile::kSync, "FLP-027") {
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(info.chip != nullptr && *info.chip != 0, "device {} has no chip name", i);
    for (const char* c = info.chip; *c != 0; ++c)
      FLHAL_EXPECT((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_',
                   "the chip name \"{}\" of device {} has the character '{}'; users type it: [a-z0-9_]+", info.chip, i, *c);
  });
}

FLHAL_CASE("device.info.texts", Profile::kSync, "FLP-027") {
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(info.product != nullptr && *info.product != 0, "device {} has no product name", i);
    FLHAL_EXPECT(info.vendor != nullptr && *info.vendor != 0, "device {} has no vendor", i);
  });
}

FLHAL_CASE("device.info.texts_live_until_shutdown", Profile::kSync, "FLP-027") {
  flhal_p_device_info_v1 info = info_of(ctx, 0);
  std::string before = fingerprint(info);
  { Slab slab(ctx.device(), 4096); }
  for (int i = 0; i < 100; ++i) info_of(ctx, 0);
  FLHAL_EXPECT(fingerprint(info) == before, "a text of device_info changed while the plugin was in use");
}

FLHAL_CASE("device.info.memory", Profile::kSync, "FLP-028") {
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(info.memory_bytes > 0, "device {} has memory_bytes 0", i);
    FLHAL_EXPECT(info.largest_slab_bytes <= info.memory_bytes, "device {}: largest_slab_bytes {} is above memory_bytes {}", i, info.largest_slab_bytes, info.memory_bytes);
    FLHAL_EXPECT((info.slab_alignment & (info.slab_alignment - 1)) == 0, "device {}: slab_alignment {} is no power of two", i, info.slab_alignment);
  });
}

FLHAL_CASE("device.info.capabilities", Profile::kSync, "FLP-029 FLP-011") {
  const flhal_plugin_table_v1& t = ctx.plugin().table();
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    auto has = [&](uint64_t cap) { return (info.caps & cap) != 0; };
    FLHAL_EXPECT((info.caps >> 9) == 0, "device {} claims capabilities 0x{:x} that plugin.h does not define", i, info.caps);
    FLHAL_EXPECT(!has(FLHAL_CAP_ADDRESSES_OURS) || has(FLHAL_CAP_ADDRESSES), "device {} claims ADDRESSES_OURS without ADDRESSES", i);
    FLHAL_EXPECT(!has(FLHAL_CAP_HOST_COHERENT) || has(FLHAL_CAP_HOST_VISIBLE), "device {} claims HOST_COHERENT without HOST_VISIBLE", i);
    FLHAL_EXPECT(!has(FLHAL_CAP_HOST_VISIBLE) || t.host_begin != nullptr, "device {} claims HOST_VISIBLE, and host_begin is empty", i);
    FLHAL_EXPECT(!has(FLHAL_CAP_EVENT_HOST_SIGNAL) || t.event_signal != nullptr, "device {} claims EVENT_HOST_SIGNAL, and event_signal is empty", i);
    FLHAL_EXPECT(info.device_class <= FLHAL_DEVICE_CLASS_MOCK, "device {} has the class {}, which plugin.h does not define", i, info.device_class);
  });
}

FLHAL_CASE("device.info.dialects", Profile::kKernel, "FLP-029") {
  ctx.need_kernels();
  bool any = false;
  each_device(ctx, [&](uint32_t, const flhal_p_device_info_v1& info) { any |= info.dialects != nullptr && *info.dialects != 0; });
  FLHAL_EXPECT(any, "module_load is given and no device names a dialect it takes");
}

FLHAL_CASE("device.info.queues", Profile::kAsync, "FLP-029") {
  ctx.need_streams();
  // 0 is "not known", as everywhere: OpenCL, for one, tells nobody how many queues run side by side.
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(info.queues <= 65536, "device {} says it has {} queues; give 0 when the number is not known", i, info.queues);
  });
}

FLHAL_CASE("device.info.dtypes", Profile::kSync, "FLP-030") {
  static const std::set<flhal_dtype> kKnown = {FLHAL_I8, FLHAL_I16, FLHAL_I32, FLHAL_I64, FLHAL_U8, FLHAL_U16, FLHAL_U32, FLHAL_U64, FLHAL_F16, FLHAL_F32,
                                               FLHAL_F64, FLHAL_BF16, FLHAL_C32, FLHAL_C64, FLHAL_C128, FLHAL_BOOL, FLHAL_F8_E4M3FN,
                                               FLHAL_F8_E4M3FNUZ, FLHAL_F8_E5M2, FLHAL_F8_E5M2FNUZ};
  each_device(ctx, [&](uint32_t i, const flhal_p_device_info_v1& info) {
    FLHAL_EXPECT(info.n_storage_dtypes == 0 || info.storage_dtypes != nullptr, "device {} counts {} dtypes and names none", i, info.n_storage_dtypes);
    std::set<flhal_dtype> seen;
    for (uint32_t k = 0; k < info.n_storage_dtypes; ++k) {
      FLHAL_EXPECT(kKnown.count(info.storage_dtypes[k]), "device {} stores the dtype 0x{:x}, which scalars.h does not have", i, info.storage_dtypes[k]);
      FLHAL_EXPECT(seen.insert(info.storage_dtypes[k]).second, "device {} lists the dtype 0x{:x} twice", i, info.storage_dtypes[k]);
    }
  });
}

FLHAL_CASE("device.info.beyond_count", Profile::kSync, "FLP-031") {
  uint32_t count = ctx.device_count();
  flhal_p_plugin* handle = ctx.handle();
  for (uint32_t index : {count, count + 1, 0xffffffffu}) {
    flhal_p_device_info_v1 info = empty_device_info();
    flhal_status answer;
    {
      auto serial = ctx.plugin().lock();
      answer = ctx.plugin().table().device_info(handle, index, &info);
    }
    expect_refused(answer, FLHAL_E_INVALID, fmt::format("device_info of index {} where device_count is {}", index, count));
  }
}

FLHAL_CASE("device.info.stays_in_struct", Profile::kSync, "FLP-005") {
  struct { flhal_p_device_info_v1 info; uint8_t behind[256]; } guarded;
  guarded.info = empty_device_info();
  std::memset(guarded.behind, 0xa5, sizeof guarded.behind);
  flhal_p_plugin* handle = ctx.handle();
  {
    auto serial = ctx.plugin().lock();
    expect_ok(ctx.plugin().table().device_info(handle, 0, &guarded.info), "device_info");
  }
  for (uint8_t b : guarded.behind) FLHAL_EXPECT(b == 0xa5, "device_info wrote past the struct_size it was given");
  FLHAL_EXPECT(guarded.info.struct_size == sizeof guarded.info && guarded.info.struct_type == FLHAL_ST_DEVICE_INFO && guarded.info.next == nullptr,
               "device_info changed the head of the struct");
}

FLHAL_CASE("device.info.longer_struct", Profile::kSync, "FLP-006") {
  struct { flhal_p_device_info_v1 info; uint64_t behind[16]; } longer{};
  longer.info = empty_device_info();
  longer.info.struct_size = sizeof longer;
  flhal_p_plugin* handle = ctx.handle();
  {
    auto serial = ctx.plugin().lock();
    expect_ok(ctx.plugin().table().device_info(handle, 0, &longer.info), "device_info with a longer struct");
  }
  for (uint64_t b : longer.behind) FLHAL_EXPECT(b == 0, "device_info wrote into the part of a longer struct that it does not know");
  FLHAL_EXPECT(fingerprint(longer.info) == fingerprint(info_of(ctx, 0)), "device_info answers something else for a longer struct");
}

FLHAL_CASE("device.open.gives_handle", Profile::kSync, "FLP-032") { ctx.device(); }

FLHAL_CASE("device.open.beyond_count", Profile::kSync, "FLP-031 FLP-018") {
  uint32_t count = ctx.device_count();
  flhal_p_plugin* handle = ctx.handle();
  flhal_p_device* device = nullptr;
  flhal_status answer;
  {
    auto serial = ctx.plugin().lock();
    answer = ctx.plugin().table().device_open(handle, count, &device);
  }
  expect_refused(answer, FLHAL_E_INVALID, fmt::format("device_open of index {} where device_count is {}", count, count));
  FLHAL_EXPECT(device == nullptr, "device_open was refused and gave a handle all the same");
  Slab slab(ctx.device(), 4096);
}

FLHAL_CASE("device.open.again_after_close", Profile::kSync, "FLP-032") {
  flhal_p_plugin* handle = ctx.handle();
  for (int i = 0; i < 3; ++i) {
    Device device(ctx.plugin(), handle, 0);
    Slab slab(device, 65536);
    auto bytes = ctx.random_bytes(65536);
    slab.write(bytes);
    expect_equal(slab.read(), bytes, fmt::format("a slab of the device's opening {}", i + 1));
  }
}

FLHAL_CASE("device.open.all_at_once", Profile::kSync, "FLP-032") {
  uint32_t count = ctx.device_count();
  std::vector<std::unique_ptr<Slab>> slabs;
  std::vector<std::vector<uint8_t>> contents;
  for (uint32_t i = 0; i < count; ++i) {
    slabs.push_back(std::make_unique<Slab>(ctx.device(i), 4096));
    contents.push_back(ctx.random_bytes(4096));
    slabs.back()->write(contents.back());
  }
  for (uint32_t i = 0; i < count; ++i) expect_equal(slabs[i]->read(), contents[i], fmt::format("the slab of device {} while all are open", i));
}

FLHAL_CASE("device.close.leaves_nothing", Profile::kSync, "FLP-033") {
  flhal_p_plugin* handle = ctx.handle();
  auto cycle = [&] {
    Device device(ctx.plugin(), handle, 0);
    Slab slab(device, 65536);
    slab.write(ctx.random_bytes(65536));
  };
  for (int i = 0; i < 3; ++i) cycle();
  auto threads = thread_ids();
  size_t files = open_files();
  uint64_t blocks = host_live_blocks(), heap = heap_bytes();
  constexpr int kRounds = 30;
  for (int i = 0; i < kRounds; ++i) cycle();
  FLHAL_EXPECT(open_files() <= files, "{} times device_open and device_close leave {} files open", kRounds, open_files() - files);
  FLHAL_EXPECT(threads_beyond(threads).empty(), "{} times device_open and device_close leave threads behind", kRounds);
  FLHAL_EXPECT(host_live_blocks() <= blocks, "{} times device_open and device_close leave {} blocks of host->alloc", kRounds, host_live_blocks() - blocks);
  int64_t grown = static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(heap);
  FLHAL_EXPECT(grown < kRounds * 512, "{} times device_open and device_close leave {} bytes on the heap", kRounds, grown);
}

FLHAL_CASE("device.budget.plausible", Profile::kSync, "FLP-041") {
  if (ctx.plugin().table().memory_budget == nullptr) not_supported("the plugin has no memory_budget; core counts for itself");
  Device& device = ctx.device();
  Slab slab(device, 1 << 20);
  uint64_t free_bytes = ~uint64_t{0}, total = 0;
  auto serial = ctx.plugin().lock();
  expect_ok(device.table.memory_budget(device.handle, &free_bytes, &total), "memory_budget");
  FLHAL_EXPECT(total > 0, "memory_budget says that the device has 0 bytes");
  FLHAL_EXPECT(free_bytes <= total, "memory_budget says {} bytes are free of {}", free_bytes, total);
}

}  // namespace flhal::conformance
