// src/core/device.h: one chip. The list freezes at the first count; a Device lives as long as the process.
#pragma once

#include <flhal/device.h>
#include <flhal/plugin.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plugin_table.h"
#include "core/status.h"

namespace flhal {

class Stream;
class Pool;

inline constexpr uint32_t kDeviceTag = 0x44564c46;  // "FLVD"

struct Device {
  uint32_t tag = kDeviceTag;
  uint32_t index = 0;
  std::string name;                     // unique in the process
  Plugin* plugin = nullptr;
  uint32_t plugin_device = 0;           // the plugin's own index
  flhal_p_device_info_v1 info{};        // strings point into info_strings
  std::vector<std::string> info_strings;
  std::vector<flhal_dtype> storage_dtypes;

  std::atomic<uint32_t> state{FLHAL_DEVICE_STATE_CLOSED};
  std::mutex open_mutex;
  flhal_p_device* handle = nullptr;     // set by open()
  Stream* default_stream = nullptr;     // made by open()
  Pool* pool = nullptr;                 // made by open()
  std::atomic<uint32_t> generation{1};  // plans made under another generation are dropped

  std::mutex lost_mutex;                // guards lost_reason; a leaf
  std::string lost_reason;

  bool has(uint64_t cap) const { return (info.caps & cap) != 0; }
  bool lost() const { return state.load(std::memory_order_relaxed) == FLHAL_DEVICE_STATE_LOST; }
  Status open();                        // idempotent
  void mark_lost(const char* why);      // sticky until reset
  Status close();                       // waits, gives everything back; for shutdown and reset
  Status reset();                       // closes and opens a LOST device again; else nothing
  bool stores(flhal_dtype dtype) const; // may memory of this dtype lie on the chip
};

// The frozen list. devices() counts on first use (discovery).
const std::vector<Device*>& devices();
bool devices_frozen();
Status check_device(const flhal_device* handle, const char* function);   // tag check, fork guard
// Layers above core that keep things of a device (plans, modules) say here how to give them back before it is closed.
void on_device_close(void (*hook)(Device*));
extern std::atomic<bool> g_shut_down;   // flhal_shutdown was called
Status shut_down_failure(const char* function);
inline Device* device_from(flhal_device* h) { return reinterpret_cast<Device*>(h); }
inline flhal_device* handle_of(Device* d) { return reinterpret_cast<flhal_device*>(d); }

}  // namespace flhal
