// conformance/areas/abi_library.cc: the file, its one symbol, and what the entry answers.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "areas/elf_file.h"
#include "areas/surroundings.h"
#include "runner/context.h"

namespace flhal::conformance {
namespace {

// A struct with room behind it that must stay as it is.
template <typename T>
struct Guarded {
  T value;
  uint8_t behind[256];
  explicit Guarded(const T& v, uint8_t filling) : value(v) { std::memset(behind, filling, sizeof behind); }
  bool untouched(uint8_t filling) const {
    return std::all_of(std::begin(behind), std::end(behind), [=](uint8_t b) { return b == filling; });
  }
};

flhal_plugin_info_v1 answer(Context& ctx) {
  flhal_plugin_info_v1 info = empty_plugin_info();
  expect_ok(ctx.plugin().entry()(host_table(), &info), "flhal_plugin_v1");
  return info;
}

bool same_text(const char* a, const char* b) { return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0); }

bool is_utf8(const char* s) {
  for (auto* p = reinterpret_cast<const unsigned char*>(s); *p != 0;) {
    int more = *p < 0x80 ? 0 : (*p & 0xe0) == 0xc0 ? 1 : (*p & 0xf0) == 0xe0 ? 2 : (*p & 0xf8) == 0xf0 ? 3 : -1;
    if (more < 0) return false;
    ++p;
    for (; more > 0; --more, ++p)
      if ((*p & 0xc0) != 0x80) return false;
  }
  return true;
}

void expect_given(const char* text, const char* field) {
  FLHAL_EXPECT(text != nullptr && *text != 0, "flhal_plugin_v1 left `{}` empty", field);
  FLHAL_EXPECT(is_utf8(text), "`{}` is not UTF-8", field);
}

}  // namespace

FLHAL_CASE("abi.library.exports_one_symbol", Profile::kSync, "FLP-001") {
  if (ctx.plugin().info().sanitizer != 0) not_supported("a sanitizer's build exports the sanitizer's symbols");
  ElfFile file(ctx.plugin().path());
  FLHAL_EXPECT(file.exported.count("flhal_plugin_v1"), "the library does not export flhal_plugin_v1");
  std::string others;
  for (const std::string& name : file.exported)
    if (name != "flhal_plugin_v1") others += " " + name;
  FLHAL_EXPECT(others.empty(), "the library exports more than flhal_plugin_v1:{}; flhal_add_plugin hides them", others);
}

FLHAL_CASE("abi.library.loads_now_and_local", Profile::kSync, "FLP-002") { ctx.plugin(); }

FLHAL_CASE("abi.library.needs_no_framework", Profile::kSync, "FLP-003") {
  for (const std::string& name : ElfFile(ctx.plugin().path()).needed)
    for (const char* forbidden : {"libflhal.", "libtorch", "libc10", "libpython"})
      FLHAL_EXPECT(name.rfind(forbidden, 0) != 0, "the library is linked to {}; a plugin only needs flhal/plugin.h", name);
}

FLHAL_CASE("abi.entry.same_answer_each_time", Profile::kSync, "FLP-004") {
  flhal_plugin_info_v1 first = answer(ctx);
  for (int i = 0; i < 5; ++i) {
    flhal_plugin_info_v1 now = answer(ctx);
    FLHAL_EXPECT(same_text(first.id, now.id) && same_text(first.version, now.version) && same_text(first.build_id, now.build_id) &&
                     same_text(first.vendor, now.vendor),
                 "flhal_plugin_v1 gave other texts at its call {}: build_id \"{}\", before \"{}\"", i + 2, now.build_id ? now.build_id : "", first.build_id ? first.build_id : "");
    FLHAL_EXPECT(first.table == now.table, "flhal_plugin_v1 gave another table at its call {}; tables are static", i + 2);
    FLHAL_EXPECT(first.flags == now.flags && first.abi_minor == now.abi_minor && first.oldest_host_minor == now.oldest_host_minor,
                 "flhal_plugin_v1 gave other flags or versions at its call {}", i + 2);
  }
}

FLHAL_CASE("abi.entry.starts_nothing", Profile::kSync, "FLP-004") {
  ctx.plugin();
  auto threads = thread_ids();
  size_t files = open_files();
  uint64_t blocks = host_live_blocks();
  for (int i = 0; i < 3; ++i) answer(ctx);
  FLHAL_EXPECT(threads_beyond(threads).empty(), "flhal_plugin_v1 starts a thread; that belongs into device_open");
  FLHAL_EXPECT(open_files() == files, "flhal_plugin_v1 leaves {} files open", open_files() - files);
  FLHAL_EXPECT(host_live_blocks() == blocks, "flhal_plugin_v1 keeps memory from host->alloc");
}

FLHAL_CASE("abi.entry.stays_in_struct", Profile::kSync, "FLP-005") {
  for (uint8_t filling : {0xa5, 0x00}) {
    Guarded<flhal_plugin_info_v1> info(empty_plugin_info(), filling);
    expect_ok(ctx.plugin().entry()(host_table(), &info.value), "flhal_plugin_v1");
    FLHAL_EXPECT(info.untouched(filling), "flhal_plugin_v1 wrote past the struct_size it was given");
  }
}

FLHAL_CASE("abi.entry.keeps_head", Profile::kSync, "FLP-005") {
  flhal_plugin_info_v1 info = answer(ctx);
  FLHAL_EXPECT(info.struct_size == sizeof info && info.struct_type == FLHAL_ST_PLUGIN_INFO && info.next == nullptr,
               "flhal_plugin_v1 changed the head of the struct (size {}, type {})", info.struct_size, info.struct_type);
}

FLHAL_CASE("abi.entry.longer_struct", Profile::kSync, "FLP-006") {
  Guarded<flhal_plugin_info_v1> info(empty_plugin_info(), 0);
  info.value.struct_size = sizeof info;      // a newer core, whose fields behind ours are zero
  expect_ok(ctx.plugin().entry()(host_table(), &info.value), "flhal_plugin_v1 with a longer struct");
  FLHAL_EXPECT(info.untouched(0), "flhal_plugin_v1 wrote into the part of a longer struct that it does not know");
  FLHAL_EXPECT(info.value.table == ctx.plugin().info().table, "flhal_plugin_v1 gives another table for a longer struct");
  FLHAL_EXPECT(info.value.struct_size == sizeof info, "flhal_plugin_v1 changed the struct_size {} of the caller to {}", sizeof info, info.value.struct_size);
}

FLHAL_CASE("abi.entry.longer_host_table", Profile::kSync, "FLP-006") {
  Guarded<flhal_host_v1> host(*host_table(), 0);
  host.value.struct_size = sizeof host;
  flhal_plugin_info_v1 info = empty_plugin_info();
  expect_ok(ctx.plugin().entry()(&host.value, &info), "flhal_plugin_v1 with a longer host table");
}

FLHAL_CASE("abi.entry.texts", Profile::kSync, "FLP-007") {
  flhal_plugin_info_v1 info = answer(ctx);
  expect_given(info.id, "id");
  expect_given(info.version, "version");
  expect_given(info.build_id, "build_id");
  expect_given(info.vendor, "vendor");
  for (const char* c = info.id; *c != 0; ++c)
    FLHAL_EXPECT(std::isalnum(static_cast<unsigned char>(*c)) || std::strchr("_-.", *c) != nullptr,
                 "the id \"{}\" has the character '{}'; letters, digits, '_', '-' and '.' are allowed", info.id, *c);
}

FLHAL_CASE("abi.entry.texts_outlive_shutdown", Profile::kSync, "FLP-007") {
  flhal_plugin_info_v1 info = answer(ctx);
  std::string id = info.id ? info.id : "", version = info.version ? info.version : "";
  ctx.device();
  ctx.close();
  FLHAL_EXPECT(id == (info.id ? info.id : "") && version == (info.version ? info.version : ""), "the texts of flhal_plugin_v1 changed at shutdown; they are static");
}

FLHAL_CASE("abi.entry.versions", Profile::kSync, "FLP-008") {
  flhal_plugin_info_v1 info = answer(ctx);
  FLHAL_EXPECT(info.oldest_host_minor <= info.abi_minor, "oldest_host_minor {} is above abi_minor {}", info.oldest_host_minor, info.abi_minor);
  FLHAL_EXPECT(info.oldest_host_minor <= FLHAL_PLUGIN_ABI_MINOR, "the plugin needs ABI minor {}, this suite speaks {}", info.oldest_host_minor, FLHAL_PLUGIN_ABI_MINOR);
}

FLHAL_CASE("abi.entry.flags", Profile::kSync, "FLP-009") {
  flhal_plugin_info_v1 info = answer(ctx);
  constexpr uint32_t kKnown = FLHAL_PLUGIN_SERIALIZE_ALL | FLHAL_PLUGIN_FORK_SAFE_PROBE;
  FLHAL_EXPECT((info.flags & ~kKnown) == 0, "flags 0x{:x} has bits that plugin.h does not define", info.flags);
  FLHAL_EXPECT(info.sanitizer <= 2, "sanitizer is {}; 0, 1 and 2 are defined", info.sanitizer);
}

FLHAL_CASE("abi.table.head", Profile::kSync, "FLP-010") {
  const flhal_plugin_table_v1* table = answer(ctx).table;
  FLHAL_EXPECT(table != nullptr, "flhal_plugin_v1 left `table` NULL");
  FLHAL_EXPECT(table->struct_type == FLHAL_ST_TABLE, "the table's struct_type is {}, not FLHAL_ST_TABLE", table->struct_type);
  constexpr size_t kBytesV1_0 = offsetof(flhal_plugin_table_v1, event_signal) + sizeof(void*);   // a later suite must take it, too
  FLHAL_EXPECT(table->struct_size >= kBytesV1_0, "the table's struct_size is {}; version 1.0 has {} bytes", table->struct_size, kBytesV1_0);
  FLHAL_EXPECT(table->next == nullptr, "the table's `next` is not NULL, and no extension is defined");
}

FLHAL_CASE("abi.table.required_slots", Profile::kSync, "FLP-010") {
  const flhal_plugin_table_v1& t = ctx.plugin().table();
  std::string empty;
#define SLOT(name) if (t.name == nullptr) empty += " " #name;
  SLOT(init) SLOT(shutdown) SLOT(device_count) SLOT(device_info) SLOT(device_open) SLOT(device_close) SLOT(memory_alloc)
  SLOT(memory_free) SLOT(copy) SLOT(fill)
#undef SLOT
  FLHAL_EXPECT(empty.empty(), "required slots are empty:{}", empty);
}

FLHAL_CASE("abi.table.complete_groups", Profile::kSync, "FLP-011") {
  const flhal_plugin_table_v1& t = ctx.plugin().table();
  auto whole = [](std::initializer_list<bool> slots, const char* group) {
    auto n = std::count(slots.begin(), slots.end(), true);
    FLHAL_EXPECT(n == 0 || n == static_cast<long>(slots.size()), "{} of the {} slots {} are given; they come all or none", n, slots.size(), group);
  };
  whole({t.module_load != nullptr, t.module_unload != nullptr, t.function_get != nullptr, t.launch != nullptr}, "11 to 14 (modules)");
  whole({t.host_begin != nullptr, t.host_end != nullptr}, "16 and 17 (host access)");
  whole({t.stream_create != nullptr, t.stream_destroy != nullptr, t.stream_query != nullptr, t.stream_synchronize != nullptr,
         t.event_create != nullptr, t.event_destroy != nullptr, t.event_record != nullptr, t.event_wait != nullptr,
         t.event_query != nullptr, t.event_synchronize != nullptr, t.event_elapsed_ns != nullptr}, "18 to 28 (streams and events)");
  FLHAL_EXPECT(t.event_signal == nullptr || t.stream_create != nullptr, "event_signal is given without streams");
}

FLHAL_CASE("abi.optional.unknown_name", Profile::kSync, "FLP-012") {
  const flhal_plugin_info_v1& info = ctx.plugin().info();
  if (info.optional_table == nullptr) return;
  for (const char* name : {"x.flhal.no_such_table", "", "op", "opsx", "OPS"})
    FLHAL_EXPECT(info.optional_table(name, 0) == nullptr, "optional_table(\"{}\") gave a table; a name the plugin does not know is NULL", name);
}

FLHAL_CASE("abi.optional.same_table_each_time", Profile::kSync, "FLP-012") {
  const flhal_plugin_info_v1& info = ctx.plugin().info();
  if (info.optional_table == nullptr) return;
  FLHAL_EXPECT(info.optional_table("ops", 0) == info.optional_table("ops", 0), "optional_table(\"ops\") gave two pointers; tables are static");
}

FLHAL_CASE("abi.optional.ops_head", Profile::kOps, "FLP-010 FLP-012") {
  ctx.need_ops();
  const flhal_ops_v1& ops = *ctx.plugin().ops();
  constexpr size_t kBytesV1_0 = offsetof(flhal_ops_v1, op_describe) + sizeof(void*);
  FLHAL_EXPECT(ops.struct_type == FLHAL_ST_OPS && ops.struct_size >= kBytesV1_0 && ops.next == nullptr,
               "the table \"ops\" begins with size {} and type {}; it must be {} and {}", ops.struct_size, ops.struct_type, kBytesV1_0, FLHAL_ST_OPS);
  FLHAL_EXPECT(ops.plan_create && ops.plan_run && ops.plan_destroy && ops.op_describe, "a slot of the table \"ops\" is empty");
  FLHAL_EXPECT(ops.reserved == 0, "`reserved` of the table \"ops\" is not zero");
}

}  // namespace flhal::conformance
