// src/core/plugin_table.cc: from a plugin's table, whatever its size, to core's private copy without a null.
//
// Size rules: a short table is filled with stubs from the first slot it does not reach; it must reach slot 10. A longer
// table is legal from a plugin of a newer ABI minor (core never calls what it does not know); from one of the same minor
// or older, bytes behind the last slot that are not zero are refused with their offset.
#include "core/plugin_table.h"

#include <cstddef>
#include <cstring>

#include "core/host_services.h"
#include "core/plugin_table_fill.h"

namespace flhal {
namespace {

enum Group { kRequired, kCompiler, kOptional, kHostAccess, kStreams, kSignal, kGroupCount };

template <typename R>
R stub_answer(const char* slot) {
  if constexpr (!std::is_void_v<R>) {
    leave_plugin_error(FLHAL_E_UNSUPPORTED, 0, slot, " is a slot this plugin does not have");
    return FLHAL_E_UNSUPPORTED;
  }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  result stub_##name parameters { return stub_answer<result>(#name); }
#include "core/slots.def"
#include "core/ops_slots.def"
#undef FLHAL_SLOT
#pragma GCC diagnostic pop

constexpr size_t kHead = 16;  // struct_size, struct_type, next
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  static_assert(offsetof(flhal_plugin_table_v1, name) == kHead + 8 * (number - 1));
#include "core/slots.def"
#undef FLHAL_SLOT
static_assert(sizeof(flhal_ops_v1) == kHead + 8 + 8 * 4);

struct SlotRow {
  const char* name;
  Group group;
};
constexpr SlotRow kSlots[] = {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) {#name, group},
#include "core/slots.def"
#undef FLHAL_SLOT
};
constexpr size_t kSlotCount = sizeof kSlots / sizeof kSlots[0];
static_assert(sizeof(flhal_plugin_table_v1) == kHead + 8 * kSlotCount);

// Walks a `next` chain: what has the high bit set is needed by the plugin and unknown to this core.
Refusal check_chain(const void* next, const char* table) {
  struct Link {
    uint32_t struct_size, struct_type;
    const void* next;
  };
  for (int length = 0; next != nullptr; ++length) {
    const Link* link = static_cast<const Link*>(next);
    if (length == 64)
      return refuse(FLHAL_E_ABI, fmt::format("the chain of extensions of its table {} has more than 64 links", table),
                    "ask the maker for a corrected plugin");
    if (link->struct_type & 0x80000000u)
      return refuse(FLHAL_E_ABI,
                    fmt::format("its table {} needs the extension {:#x}, which this flhal does not know", table, link->struct_type),
                    "update flhal: pip install --upgrade torch-fl");
    next = link->next;
  }
  return {};
}

Refusal check_tail(const void* table, size_t ours, uint32_t theirs, bool plugin_is_newer, const char* name) {
  if (plugin_is_newer) return {};
  const unsigned char* bytes = static_cast<const unsigned char*>(table);
  for (size_t i = ours; i < theirs; ++i)
    if (bytes[i] != 0)
      return refuse(FLHAL_E_ABI,
                    fmt::format("its table {} has {} bytes where this flhal knows {}, and the byte at offset {} is not zero", name,
                                theirs, ours, i),
                    "build the plugin against the headers of the ABI minor it declares");
  return {};
}

constexpr uint32_t kLongestTable = 64 * 1024;  // a size beyond this is not a size

}  // namespace

Refusal fill_table(Plugin& plugin, const flhal_plugin_table_v1* theirs, bool plugin_is_newer) {
  if (theirs == nullptr)
    return refuse(FLHAL_E_ABI, "flhal_plugin_v1 gave no table", "set info->table before returning FLHAL_OK");
  const uint32_t size = theirs->struct_size;
  if (theirs->struct_type != FLHAL_ST_TABLE || size > kLongestTable || size < kHead)
    return refuse(FLHAL_E_ABI,
                  fmt::format("its table says struct_type {} and {} bytes; type {} and at least {} bytes are needed",
                              theirs->struct_type, size, FLHAL_ST_TABLE, kHead + 80),
                  "begin the table with sizeof(flhal_plugin_table_v1), FLHAL_ST_TABLE");
  FLHAL_REFUSE_ON(check_chain(theirs->next, "flhal_plugin_table_v1"));
  FLHAL_REFUSE_ON(check_tail(theirs, sizeof plugin.table, size, plugin_is_newer, "flhal_plugin_table_v1"));

  plugin.table = {};
  std::memcpy(&plugin.table, theirs, size < sizeof plugin.table ? size : sizeof plugin.table);
  plugin.table.struct_size = sizeof plugin.table;
  plugin.table.next = nullptr;

  // What is there, per group; the first missing one for the sentence.
  void* slots[kSlotCount];
  std::memcpy(slots, reinterpret_cast<char*>(&plugin.table) + kHead, sizeof slots);
  uint32_t present[kGroupCount] = {}, total[kGroupCount] = {};
  const char* missing[kGroupCount] = {};
  for (size_t i = 0; i < kSlotCount; ++i) {
    bool reached = kHead + 8 * (i + 1) <= size;
    Group group = kSlots[i].group;
    ++total[group];
    if (slots[i] != nullptr && reached) {
      ++present[group];
    } else if (missing[group] == nullptr) {
      missing[group] = kSlots[i].name;
    }
    if (group == kRequired && !reached)
      return refuse(FLHAL_E_ABI,
                    fmt::format("its table is cut off: {} bytes end before slot {} ({}), and the first 10 slots are needed", size,
                                i + 1, kSlots[i].name),
                    "build the plugin against flhal/plugin.h and set struct_size to sizeof(flhal_plugin_table_v1)");
  }
  if (missing[kRequired] != nullptr)
    return refuse(FLHAL_E_ABI, fmt::format("the required slot {} is NULL", missing[kRequired]), "fill all of the first 10 slots");
  constexpr struct {
    Group group;
    const char* which;
  } kAllOrNone[] = {{kCompiler, "11 to 14"}, {kHostAccess, "16 and 17"}, {kStreams, "18 to 28"}};
  for (const auto& row : kAllOrNone)
    if (present[row.group] != 0 && present[row.group] != total[row.group])
      return refuse(FLHAL_E_ABI,
                    fmt::format("slots {} come all or none, and {} is NULL while {} of the {} are there", row.which,
                                missing[row.group], present[row.group], total[row.group]),
                    fmt::format("fill {} too, or leave all of slots {} NULL", missing[row.group], row.which));
  if (present[kSignal] != 0 && present[kStreams] == 0)
    return refuse(FLHAL_E_ABI, "event_signal is there without the stream and event slots 18 to 28",
                  "fill slots 18 to 28, or leave event_signal NULL");
  plugin.has_kernels = present[kCompiler] != 0;
  plugin.has_budget = plugin.table.memory_budget != nullptr;
  plugin.has_host_access = present[kHostAccess] != 0;
  plugin.has_streams = present[kStreams] != 0;
  fill_stubs(plugin);
  return {};
}

Refusal fill_ops(Plugin& plugin, const void* table, bool plugin_is_newer) {
  const flhal_ops_v1* theirs = static_cast<const flhal_ops_v1*>(table);
  plugin.has_ops = false;
  if (theirs != nullptr) {
    constexpr uint32_t kNeeded = offsetof(flhal_ops_v1, op_describe);
    const uint32_t size = theirs->struct_size;
    if (theirs->struct_type != FLHAL_ST_OPS || size > kLongestTable || size < kNeeded)
      return refuse(FLHAL_E_ABI,
                    fmt::format("its table ops says struct_type {} and {} bytes; type {} and at least {} bytes are needed",
                                theirs->struct_type, size, FLHAL_ST_OPS, kNeeded),
                    "begin the table with sizeof(flhal_ops_v1), FLHAL_ST_OPS");
    FLHAL_REFUSE_ON(check_chain(theirs->next, "flhal_ops_v1"));
    FLHAL_REFUSE_ON(check_tail(theirs, sizeof plugin.ops, size, plugin_is_newer, "flhal_ops_v1"));
    plugin.ops = {};
    std::memcpy(&plugin.ops, theirs, size < sizeof plugin.ops ? size : sizeof plugin.ops);
    plugin.ops.struct_size = sizeof plugin.ops;
    plugin.ops.next = nullptr;
    const char* missing = plugin.ops.plan_create == nullptr ? "plan_create"
                          : plugin.ops.plan_run == nullptr  ? "plan_run"
                          : plugin.ops.plan_destroy == nullptr ? "plan_destroy"
                                                               : nullptr;
    if (missing != nullptr)
      return refuse(FLHAL_E_ABI, fmt::format("its table ops lacks {}", missing),
                    "fill plan_create, plan_run and plan_destroy, or offer no table ops");
    plugin.has_ops = true;
  }
  fill_stubs(plugin);
  return {};
}

void fill_stubs(Plugin& plugin) {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  if (plugin.table.name == nullptr) plugin.table.name = stub_##name;
#include "core/slots.def"
#undef FLHAL_SLOT
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  if (plugin.ops.name == nullptr) plugin.ops.name = stub_##name;
#include "core/ops_slots.def"
#undef FLHAL_SLOT
}

}  // namespace flhal
