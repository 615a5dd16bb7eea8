// src/core/device_description.h: what a plugin says of itself and of its devices, as values that core owns and has checked.
//
// Idea: the same record comes from a plugin in this process, from a probe child, and from the cache. Nothing a plugin
// returns is trusted: counts are capped, texts measured and cleaned, names and alignments checked; a plugin that gives
// nonsense is refused as a whole, with the device and the field in the sentence.
#pragma once

#include <flhal/plugin.h>

#include <array>
#include <string>
#include <vector>

#include "core/plugin_table.h"
#include "core/refusal.h"

namespace flhal {

inline constexpr uint32_t kDevicesMax = 4096;    // of one plugin

struct DeviceDescription {
  std::array<uint8_t, 16> uuid{};
  std::string chip, product, vendor, driver, compute_capability, pci_address, fingerprint, dialects;
  uint64_t caps = 0, memory_bytes = 0, largest_slab_bytes = 0, slab_alignment = 0;
  uint32_t queues = 0, preferred_vector_bytes = 0, max_local_bytes = 0, dlpack_device_type = 0, device_class = 0;
  std::vector<flhal_dtype> storage_dtypes;
};

struct PluginDescription {
  std::string id, version, build_id, vendor, loaded_path;
  uint32_t abi_minor = 0, flags = 0;                   // the negotiated minor
  bool has_ops = false, has_kernels = false, has_streams = false, has_host_access = false, has_budget = false;
  std::vector<DeviceDescription> devices;
  std::vector<std::string> notes;                      // harmless oddities, for the report
};

// Asks an initialised plugin for its devices. Catches what it throws.
Refusal describe_devices(Plugin& plugin, std::vector<DeviceDescription>* out);
// Plugin and devices together.
Refusal describe_plugin(Plugin& plugin, PluginDescription* out);

// The checks alone; `where` names the device in the sentence. Puts defaults for zeros.
Refusal check_description(const std::string& where, DeviceDescription& device);

std::string uuid_text(const std::array<uint8_t, 16>& uuid);   // 32 hex digits
bool uuid_known(const std::array<uint8_t, 16>& uuid);         // not all zero
// A plugin's text: NULL is "", at most 4096 bytes, what is not UTF-8 becomes '?'.
std::string clean_text(const char* text);

}  // namespace flhal
