// src/core/device_description.cc: asking a plugin for its devices, trusting nothing.
#include "core/device_description.h"

#include <cstring>
#include <map>

#include "core/host_services.h"
#include "core/loader.h"

namespace flhal {
namespace {

constexpr size_t kTextMax = 4096;
constexpr uint32_t kDtypesMax = 256;
constexpr uint64_t kAlignmentMax = 1ull << 30;
constexpr uint64_t kDefaultAlignment = 256;

// Length of the UTF-8 sequence at `p`, 0 when it is none.
size_t utf8_length(const unsigned char* p, size_t left) {
  if (p[0] < 0x80) return p[0] >= 0x20 || p[0] == '\t' ? 1 : 0;
  size_t n = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : 0;
  if (n == 0 || n > left) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
  return n;
}

Refusal nonsense(const std::string& where, std::string what, std::string remedy) {
  return refuse(FLHAL_E_INTERNAL, fmt::format("{}: {}", where, what), std::move(remedy));
}

bool valid_chip_name(const std::string& name) {
  if (name.empty() || name.size() > 64) return false;
  bool letter = false;
  for (char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
    letter = letter || !(c >= '0' && c <= '9');
  }
  return letter && name != "uuid" && name != "none";   // "2" is an index, "uuid:..." and "none" have a meaning of their own
}

Refusal ask_one(Plugin& plugin, uint32_t i, DeviceDescription* out) {
  const std::string where = fmt::format("plugin {}: device {}", plugin.id, i);
  struct {
    flhal_p_device_info_v1 info{};
    unsigned char watch[256];
  } answer;
  std::memset(answer.watch, 0xa5, sizeof answer.watch);
  flhal_p_device_info_v1& info = answer.info;
  info.struct_size = sizeof info;
  info.struct_type = FLHAL_ST_DEVICE_INFO;
  FLHAL_REFUSE_ON(guarded(plugin.id, "device_info", [&]() -> Refusal {
    flhal_status status = plugin.table.device_info(plugin.handle, i, &info);
    if (status == FLHAL_OK) return {};
    PluginError left = take_plugin_error(status);
    return nonsense(where, fmt::format("device_info answered {}{}{}", status, left.text.empty() ? " and left no text" : ": ", left.text),
                    "see that its driver is installed and that this user may use it");
  }));
  for (unsigned char c : answer.watch)
    if (c != 0xa5)
      return nonsense(where, fmt::format("device_info wrote past the {} bytes of flhal_p_device_info_v1", sizeof info), "write min(struct_size, yours) bytes");
  std::memcpy(out->uuid.data(), info.uuid, 16);
  out->chip = clean_text(info.chip);
  if (info.chip == nullptr) return nonsense(where, "its chip name is NULL", "give a short name of [a-z0-9_]+ with a letter");
  out->product = clean_text(info.product);
  out->vendor = clean_text(info.vendor);
  out->driver = clean_text(info.driver);
  out->compute_capability = clean_text(info.compute_capability);
  out->pci_address = clean_text(info.pci_address);
  out->fingerprint = clean_text(info.fingerprint);
  out->dialects = clean_text(info.dialects);
  out->caps = info.caps;
  out->memory_bytes = info.memory_bytes;
  out->largest_slab_bytes = info.largest_slab_bytes;
  out->slab_alignment = info.slab_alignment;
  out->queues = info.queues;
  out->preferred_vector_bytes = info.preferred_vector_bytes;
  out->max_local_bytes = info.max_local_bytes;
  out->dlpack_device_type = info.dlpack_device_type;
  out->device_class = info.device_class;
  if (info.n_storage_dtypes > kDtypesMax || (info.n_storage_dtypes != 0 && info.storage_dtypes == nullptr))
    return nonsense(where, fmt::format("it names {} storage dtypes {}", info.n_storage_dtypes, info.storage_dtypes ? "; at most 256 are read" : "at NULL"),
                    "give an array and its length, or neither");
  out->storage_dtypes.assign(info.storage_dtypes, info.storage_dtypes + info.n_storage_dtypes);
  return check_description(where, *out);
}

}  // namespace

std::string clean_text(const char* text) {
  std::string out;
  if (text == nullptr) return out;
  const size_t n = strnlen(text, kTextMax);
  const unsigned char* p = reinterpret_cast<const unsigned char*>(text);
  for (size_t i = 0; i < n;) {
    size_t length = utf8_length(p + i, n - i);
    if (length == 0) {
      out += p[i] < 0x20 ? ' ' : '?';
      ++i;
    } else {
      out.append(text + i, length);
      i += length;
    }
  }
  return out;
}

std::string uuid_text(const std::array<uint8_t, 16>& uuid) {
  std::string out;
  for (uint8_t byte : uuid) out += fmt::format("{:02x}", byte);
  return out;
}

bool uuid_known(const std::array<uint8_t, 16>& uuid) { return uuid != std::array<uint8_t, 16>{}; }

Refusal check_description(const std::string& where, DeviceDescription& device) {
  if (!valid_chip_name(device.chip))
    return nonsense(where, fmt::format("its chip name is \"{}\"", device.chip.substr(0, 80)),
                    "give a short name of [a-z0-9_]+ with a letter, at most 64 long, other than uuid and none");
  if (device.slab_alignment == 0) device.slab_alignment = kDefaultAlignment;
  if ((device.slab_alignment & (device.slab_alignment - 1)) != 0 || device.slab_alignment > kAlignmentMax)
    return nonsense(where, fmt::format("its slab alignment is {}", device.slab_alignment), fmt::format("give a power of two up to {}, or 0 for {}", kAlignmentMax, kDefaultAlignment));
  if (device.memory_bytes > (1ull << 60))
    return nonsense(where, fmt::format("it claims {} bytes of memory", device.memory_bytes), "give the real size, or 0 when it is unknown");
  if (device.largest_slab_bytes == 0 || (device.memory_bytes != 0 && device.largest_slab_bytes > device.memory_bytes))
    device.largest_slab_bytes = device.memory_bytes;
  for (flhal_dtype dtype : device.storage_dtypes)
    if (FLHAL_DTYPE_BYTES(dtype) == 0 || FLHAL_DTYPE_BYTES(dtype) > 64)
      return nonsense(where, fmt::format("its storage dtype {:#x} is none", dtype), "use the values of flhal/scalars.h");
  return {};
}

Refusal describe_devices(Plugin& plugin, std::vector<DeviceDescription>* out) {
  uint32_t count = 0;
  FLHAL_REFUSE_ON(guarded(plugin.id, "device_count", [&]() -> Refusal {
    flhal_status status = plugin.table.device_count(plugin.handle, &count);
    if (status == FLHAL_OK) return {};
    PluginError left = take_plugin_error(status);
    return nonsense(fmt::format("plugin {}", plugin.id), fmt::format("device_count answered {}{}{}", status, left.text.empty() ? " and left no text" : ": ", left.text),
                    "see that its driver is installed and that this user may use it");
  }));
  if (count > kDevicesMax)
    return nonsense(fmt::format("plugin {}", plugin.id), fmt::format("device_count says {} devices; at most {} are believed", count, kDevicesMax),
                    "report it to the plugin's maker");
  out->clear();
  std::map<std::array<uint8_t, 16>, uint32_t> seen;
  for (uint32_t i = 0; i < count; ++i) {
    DeviceDescription device;
    FLHAL_REFUSE_ON(ask_one(plugin, i, &device));
    if (uuid_known(device.uuid)) {
      auto [place, fresh] = seen.emplace(device.uuid, i);
      if (!fresh)
        return nonsense(fmt::format("plugin {}", plugin.id), fmt::format("devices {} and {} have the same uuid {}", place->second, i, uuid_text(device.uuid)),
                        "give each chip its own uuid, or all zeros when it has none");
    }
    out->push_back(std::move(device));
  }
  return {};
}

Refusal describe_plugin(Plugin& plugin, PluginDescription* out) {
  out->id = plugin.id;
  out->version = plugin.version;
  out->build_id = plugin.build_id;
  out->vendor = plugin.vendor;
  out->loaded_path = plugin.library_path;
  out->abi_minor = plugin.negotiated_minor;
  out->flags = plugin.flags;
  out->has_ops = plugin.has_ops;
  out->has_kernels = plugin.has_kernels;
  out->has_streams = plugin.has_streams;
  out->has_host_access = plugin.has_host_access;
  out->has_budget = plugin.has_budget;
  out->notes = plugin.notes;
  return describe_devices(plugin, &out->devices);
}

}  // namespace flhal
