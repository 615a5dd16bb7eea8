// src/layers/slot_call.h: one call of a slot in flat form: which slot, and its arguments as words.
//
// Idea: what a layer has to know of a slot is in its row of slots.def or ops_slots.def, and nowhere else: its name, the kinds
// of its parameters (from their types), the names of them, whether it answers a status. So one row makes the wrapper, the checks
// of its handles, its line in a trace, its name in a fault rule and its counts, and flhal-replay can call it again.
#pragma once

#include <flhal/plugin.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace flhal::layers {

enum class SlotId : uint8_t {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) name,
#include "core/slots.def"
#include "core/ops_slots.def"
#undef FLHAL_SLOT
  kCount
};
inline constexpr size_t kSlots = static_cast<size_t>(SlotId::kCount);
inline constexpr size_t kBaseSlots = static_cast<size_t>(SlotId::plan_create);   // the others are of the table "ops"
inline constexpr size_t kWords = 6;             // the most parameters a slot has

enum class Kind : uint8_t {
  // handles
  kPlugin, kDevice, kMemory, kStream, kEvent, kModule, kFunction, kPlan,
  // where a slot puts a handle that it makes
  kOutPlugin, kOutDevice, kOutStream, kOutEvent, kOutModule, kOutFunction, kOutPlan,
  // values and where they go
  kU32, kI32, kU64, kText, kBytes, kPointer, kOutU32, kOutU64, kOutText, kOutPointer,
  // structs
  kHost, kInit, kDeviceInfo, kSlab, kCopy, kPlace, kSource, kLaunch, kOpCall, kPlanInfo,
};
constexpr bool is_handle(Kind k) { return k <= Kind::kPlan; }
constexpr bool is_out_handle(Kind k) { return k >= Kind::kOutPlugin && k <= Kind::kOutPlan; }
constexpr Kind made_by(Kind out) {              // the kind of handle that an out parameter receives
  constexpr Kind kMade[] = {Kind::kPlugin, Kind::kDevice, Kind::kStream, Kind::kEvent, Kind::kModule, Kind::kFunction, Kind::kPlan};
  return kMade[static_cast<size_t>(out) - static_cast<size_t>(Kind::kOutPlugin)];
}
constexpr const char* handle_noun(Kind k) {
  constexpr const char* kNouns[] = {"plugin", "device", "slab", "stream", "event", "module", "function", "plan"};
  return is_handle(k) ? kNouns[static_cast<size_t>(k)] : "value";
}

template <typename T>
struct KindOf;
#define FLHAL_KIND(type, kind) \
  template <>                  \
  struct KindOf<type> { static constexpr Kind value = Kind::kind; };
FLHAL_KIND(flhal_p_plugin*, kPlugin)
FLHAL_KIND(flhal_p_device*, kDevice)
FLHAL_KIND(flhal_p_memory*, kMemory)
FLHAL_KIND(flhal_p_stream*, kStream)
FLHAL_KIND(flhal_p_event*, kEvent)
FLHAL_KIND(flhal_p_module*, kModule)
FLHAL_KIND(flhal_p_plan*, kPlan)
FLHAL_KIND(flhal_p_plugin**, kOutPlugin)
FLHAL_KIND(flhal_p_device**, kOutDevice)
FLHAL_KIND(flhal_p_stream**, kOutStream)
FLHAL_KIND(flhal_p_event**, kOutEvent)
FLHAL_KIND(flhal_p_module**, kOutModule)
FLHAL_KIND(flhal_p_function**, kOutFunction)
FLHAL_KIND(flhal_p_plan**, kOutPlan)
FLHAL_KIND(uint32_t, kU32)
FLHAL_KIND(int32_t, kI32)
FLHAL_KIND(uint64_t, kU64)
FLHAL_KIND(const char*, kText)
FLHAL_KIND(const void*, kBytes)
FLHAL_KIND(void*, kPointer)
FLHAL_KIND(uint32_t*, kOutU32)
FLHAL_KIND(uint64_t*, kOutU64)
FLHAL_KIND(const char**, kOutText)
FLHAL_KIND(void**, kOutPointer)
FLHAL_KIND(const flhal_host_v1*, kHost)
FLHAL_KIND(const flhal_init_v1*, kInit)
FLHAL_KIND(flhal_p_device_info_v1*, kDeviceInfo)
FLHAL_KIND(flhal_p_slab_v1*, kSlab)
FLHAL_KIND(const flhal_p_copy_v1*, kCopy)
FLHAL_KIND(const flhal_p_place*, kPlace)
FLHAL_KIND(const flhal_p_source_v1*, kSource)
FLHAL_KIND(const flhal_p_launch_v1*, kLaunch)
FLHAL_KIND(const flhal_op_call_v1*, kOpCall)
FLHAL_KIND(flhal_plan_info_v1*, kPlanInfo)
#undef FLHAL_KIND

struct SlotInfo {
  const char* name;
  const char* arguments;                        // "(device, stream, what)"
  Kind kinds[kWords];
  uint8_t n;
  bool answers;                                 // false: gives nothing back
};
template <typename R, typename... A>
constexpr SlotInfo describe_slot(const char* name, const char* arguments, R (*)(A...)) {
  static_assert(sizeof...(A) <= kWords, "a slot has more parameters than a flat call has words");
  static_assert(std::is_void_v<R> || std::is_same_v<R, flhal_status>, "a slot answers a status or nothing");
  return {name, arguments, {KindOf<A>::value...}, sizeof...(A), !std::is_void_v<R>};
}
inline constexpr SlotInfo kSlotInfos[kSlots] = {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  describe_slot(#name, #arguments, static_cast<result(*) parameters>(nullptr)),
#include "core/slots.def"
#include "core/ops_slots.def"
#undef FLHAL_SLOT
};
constexpr const SlotInfo& info_of(SlotId slot) { return kSlotInfos[static_cast<size_t>(slot)]; }

// The name of parameter i, cut out of "(device, stream, what)".
constexpr std::string_view argument_name(const SlotInfo& slot, size_t i) {
  std::string_view rest(slot.arguments);
  rest.remove_prefix(1);
  for (; i > 0; --i) rest.remove_prefix(rest.find(',') + 2);
  return rest.substr(0, rest.find_first_of(",)"));
}

template <typename T>
uint64_t to_word(T value) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<uint64_t>(value);
  else return static_cast<uint64_t>(value);
}
template <typename T>
T from_word(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(word);
  else return static_cast<T>(word);
}

struct Frame;                                   // frame.h
struct Early;                                   // trace.cc

struct SlotCall {
  Frame* frame = nullptr;
  SlotId slot = SlotId::kCount;
  bool injected = false;                        // the layer fault answered; the plugin was not asked
  flhal_status answer = FLHAL_OK;
  uint64_t* words = nullptr;
  uint64_t number = 0;                          // in the order of their beginnings, over all plugins; from 1
  uint64_t begin_ns = 0, end_ns = 0;
  Early* early = nullptr;                // trace's; here and not in the thread's storage, of which a library gets little

  const SlotInfo& info() const { return info_of(slot); }
  template <typename T>
  T argument(size_t i) const { return from_word<T>(words[i]); }
  uint64_t ns() const { return end_ns - begin_ns; }
  // The first argument of a kind; nullptr when the slot has none.
  const void* first(Kind kind) const {
    const SlotInfo& slot_info = info();
    for (size_t i = 0; i < slot_info.n; ++i)
      if (slot_info.kinds[i] == kind) return from_word<const void*>(words[i]);
    return nullptr;
  }
};

// The bytes that a call is about: moved, filled, allocated, shown, compiled, or the operands of an operation.
uint64_t bytes_of(const SlotCall& call);

}  // namespace flhal::layers
