// src/tools/replay/session.cc: loading the plugin, and calling a slot through libffi.
#include "replay/session.h"

#include <dlfcn.h>
#include <ffi.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "replay/arguments.h"

namespace flhal::replay {
namespace {

std::string g_text;                      // what set_error left last

ffi_type* type_of(Kind kind) {
  switch (kind) {
    case Kind::kU32: return &ffi_type_uint32;
    case Kind::kI32: return &ffi_type_sint32;
    case Kind::kU64: return &ffi_type_uint64;
    default: return &ffi_type_pointer;
  }
}

flhal_status call_slot(void* function, const SlotInfo& info, uint64_t* words) {
  ffi_type* types[layers::kWords];
  void* values[layers::kWords];
  for (size_t i = 0; i < info.n; ++i) {
    types[i] = type_of(info.kinds[i]);
    values[i] = &words[i];               // little endian: the low half of a word is the 32-bit value
  }
  ffi_cif cif;
  if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, info.n, info.answers ? &ffi_type_sint32 : &ffi_type_void, types) != FFI_OK)
    throw std::runtime_error("libffi does not take the signature of a slot");
  ffi_arg answer = 0;
  ffi_call(&cif, FFI_FN(function), &answer, values);
  return info.answers ? static_cast<flhal_status>(answer) : FLHAL_OK;
}

}  // namespace

const flhal_host_v1 kReplayHost = {
    sizeof(flhal_host_v1), FLHAL_ST_HOST, nullptr, FLHAL_PLUGIN_ABI_MINOR, 0,
    [](int32_t, const char*) {},
    [](flhal_status, int64_t, const char* text) { g_text = text ? text : ""; },
    [](uint64_t bytes, uint64_t align) -> void* {
      void* p = nullptr;
      return posix_memalign(&p, std::max<uint64_t>(align, sizeof(void*)), bytes ? bytes : 1) == 0 ? p : nullptr;
    },
    [](void* p) { free(p); },
    [](uint64_t, flhal_status) {},
    [](const char*) -> const char* { return nullptr; },
    []() -> uint64_t { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); },
};

Session::Session(const std::string& plugin_path) {
  void* library = dlopen(plugin_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(fmt::format("{} does not load: {}", plugin_path, dlerror()));
  auto entry = reinterpret_cast<flhal_plugin_v1_fn>(dlsym(library, "flhal_plugin_v1"));
  flhal_plugin_info_v1 info{};
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_PLUGIN_INFO;
  if (entry == nullptr || entry(&kReplayHost, &info) != FLHAL_OK || info.table == nullptr)
    throw std::runtime_error(fmt::format("{} is no plugin, or refused to answer: {}", plugin_path, g_text));
  id_ = info.id ? info.id : plugin_path;
  std::memcpy(&table_, info.table, std::min<size_t>(info.table->struct_size, sizeof table_));
  const void* ops = info.optional_table ? info.optional_table("ops", 0) : nullptr;
  if (ops != nullptr) std::memcpy(&ops_, ops, std::min<size_t>(static_cast<const flhal_ops_v1*>(ops)->struct_size, sizeof ops_));
}

void* Session::slot_address(SlotId slot) const {
  constexpr size_t kTableHead = offsetof(flhal_plugin_table_v1, init), kOpsHead = offsetof(flhal_ops_v1, plan_create);
  const auto i = static_cast<size_t>(slot);
  void* found = nullptr;
  if (i < layers::kBaseSlots) std::memcpy(&found, reinterpret_cast<const char*>(&table_) + kTableHead + i * sizeof(void*), sizeof found);
  else std::memcpy(&found, reinterpret_cast<const char*>(&ops_) + kOpsHead + (i - layers::kBaseSlots) * sizeof(void*), sizeof found);
  return found;
}

Outcome Session::make(const FlatCall& call) {
  Outcome outcome;
  if (call.injected) {
    outcome.why_not = "the layer fault had answered it";
    return outcome;
  }
  void* function = slot_address(call.slot);
  if (function == nullptr) {
    outcome.why_not = "this plugin has no such slot";
    return outcome;
  }
  try {
    Arguments arguments(*this, call);
    g_text.clear();
    const auto begin = std::chrono::steady_clock::now();
    outcome.answer = call_slot(function, call.info(), arguments.words);
    outcome.us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    outcome.made = true;
    outcome.text = g_text;
    arguments.take_results(outcome.answer, &outcome.difference);
  } catch (const CannotMake& missing) {
    outcome.why_not = missing.what();
  }
  return outcome;
}

}  // namespace flhal::replay
