// src/layers/validate_device.cc: counting, describing and opening chips.
#include <cstring>

#include "layers/validate_state.h"

namespace flhal::layers {
namespace {

bool good_name(const char* name) {
  if (name == nullptr || *name == 0) return false;
  for (const char* c = name; *c; ++c)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_')) return false;
  return true;
}

bool is_dtype(flhal_dtype t) {
  constexpr flhal_dtype kAll[] = {FLHAL_I8,  FLHAL_I16, FLHAL_I32,  FLHAL_I64, FLHAL_U8,  FLHAL_U16,  FLHAL_U32,  FLHAL_U64,       FLHAL_F16,         FLHAL_F32,      FLHAL_F64,
                                  FLHAL_BF16, FLHAL_C32, FLHAL_C64, FLHAL_C128, FLHAL_BOOL, FLHAL_F8_E4M3FN, FLHAL_F8_E4M3FNUZ, FLHAL_F8_E5M2, FLHAL_F8_E5M2FNUZ};
  for (flhal_dtype known : kAll)
    if (t == known) return true;
  return false;
}

void check_capabilities(const SlotCall& call, const flhal_p_device_info_v1& info) {
  auto has = [&](uint64_t cap) { return (info.caps & cap) != 0; };
  const Plugin* plugin = call.frame->plugin;
  std::string wrong;
  if (info.caps >> 9) wrong = fmt::format("{:#x} is not defined", info.caps & ~0x1ffull);
  if (has(FLHAL_CAP_ADDRESSES_OURS) && !has(FLHAL_CAP_ADDRESSES)) wrong = "ADDRESSES_OURS without ADDRESSES";
  if (has(FLHAL_CAP_HOST_COHERENT) && !has(FLHAL_CAP_HOST_VISIBLE)) wrong = "HOST_COHERENT without HOST_VISIBLE";
  if (plugin && has(FLHAL_CAP_HOST_VISIBLE) && !plugin->has_host_access) wrong = "HOST_VISIBLE, and host_begin is empty";
  if (plugin && has(FLHAL_CAP_EVENT_HOST_SIGNAL) && !plugin->has_streams) wrong = "EVENT_HOST_SIGNAL, and there are no events";
  if (!wrong.empty()) found(Finding::capabilities_inconsistent, call, wrong);
}

void check_memory(const SlotCall& call, const flhal_p_device_info_v1& info) {
  const uint64_t align = info.slab_alignment;
  if (info.memory_bytes == 0 || info.largest_slab_bytes > info.memory_bytes || (align & (align - 1)) != 0)
    found(Finding::memory_implausible, call, fmt::format("memory {}, largest slab {}, alignment {}", info.memory_bytes, info.largest_slab_bytes, align));
}

void check_dtypes(const SlotCall& call, const flhal_p_device_info_v1& info) {
  for (uint32_t i = 0; i < info.n_storage_dtypes; ++i) {
    if (!is_dtype(info.storage_dtypes[i])) return found(Finding::dtypes_wrong, call, fmt::format("{:#x} is none", info.storage_dtypes[i]));
    for (uint32_t j = 0; j < i; ++j)
      if (info.storage_dtypes[i] == info.storage_dtypes[j]) return found(Finding::dtypes_wrong, call, fmt::format("{:#x} is listed twice", info.storage_dtypes[i]));
  }
}

void check_info(const SlotCall& call) {
  const uint32_t index = call.argument<uint32_t>(1);
  auto& info = *call.argument<const flhal_p_device_info_v1*>(2);
  Validation& v = validation(call);
  for (const auto& [i, chip] : v.chips)
    for (const auto& [text, said] : chip.texts)
      if (said != text) found(Finding::text_changed, call, fmt::format("device {} said \"{}\" and now says \"{}\"", i, said, std::string(text).substr(0, 80)));
  if (call.answer != FLHAL_OK) return;
  if (v.counted && index >= v.count) return found(Finding::beyond_count, call, fmt::format("index {} of {}", index, v.count));
  KnownChip now;
  std::memcpy(now.uuid.data(), info.uuid, 16);
  now.caps = info.caps;
  now.dialects = info.dialects ? info.dialects : "";
  for (const char* text : {info.chip, info.product, info.vendor, info.driver, info.compute_capability, info.pci_address, info.fingerprint, info.dialects})
    if (text != nullptr) now.texts.emplace_back(text, text);
  if (now.uuid == std::array<uint8_t, 16>{}) found(Finding::uuid_zero, call, fmt::format("device {}", index));
  for (const auto& [i, chip] : v.chips) {
    if (i == index && chip.uuid != now.uuid) found(Finding::chip_moved, call, fmt::format("device {} has another uuid than before", index));
    if (i != index && chip.uuid == now.uuid) found(Finding::uuid_twice, call, fmt::format("devices {} and {}", i, index));
  }
  if (!good_name(info.chip)) found(Finding::chip_name_wrong, call, fmt::format("\"{}\"", info.chip ? info.chip : ""));
  check_memory(call, info);
  check_capabilities(call, info);
  check_dtypes(call, info);
  v.chips[index] = std::move(now);
}

}  // namespace

void check_device_call(const SlotCall& call) {
  Validation& v = validation(call);
  if (call.slot == SlotId::device_info) return check_info(call);
  if (call.answer != FLHAL_OK) return;
  if (call.slot == SlotId::device_count) {
    const uint32_t count = *call.argument<uint32_t*>(1);
    if (v.counted && count != v.count) found(Finding::count_changed, call, fmt::format("it was {} and is {}", v.count, count));
    v.counted = true;
    v.count = count;
  } else if (call.slot == SlotId::device_open) {
    if (Object* device = v.objects.find(Kind::kDevice, *call.argument<flhal_p_device**>(2))) device->index = call.argument<uint32_t>(1);
  }
}

}  // namespace flhal::layers
