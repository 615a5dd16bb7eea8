// src/core/device.cc: opening, losing and resetting one device.
//
// Locks: open_mutex serialises open, reset and shutdown of one device. It is held during calls into the plugin that may
// take long, and never taken by the hot path, which reads `state` only.
#include "core/device.h"

#include <algorithm>

#include "core/config.h"
#include "core/device_description.h"
#include "core/discovery.h"
#include "core/fork_guard.h"
#include "core/loader.h"
#include "core/log.h"
#include "core/slot_watch.h"
#include "core/stream.h"
#include "layers/frame.h"
#include "memory/pinned.h"
#include "memory/pool.h"

namespace flhal {

std::atomic<bool> g_shut_down{false};

Status shut_down_failure(const char* function) {
  return fail(FLHAL_E_INVALID, "{}: flhal_shutdown was called, and nothing works after it; start a new process", function);
}

namespace {

std::mutex& g_hooks_mutex = *new std::mutex;
std::vector<void (*)(Device*)>& g_close_hooks = *new std::vector<void (*)(Device*)>;

void run_close_hooks(Device* device) {
  std::vector<void (*)(Device*)> hooks;
  {
    std::lock_guard lock(g_hooks_mutex);
    hooks = g_close_hooks;
  }
  for (auto hook : hooks) hook(device);
}

// A plugin that only its probe child has seen is loaded now, and must still be what the child saw.
Status load_late(Plugin& plugin, bool* now) {
  std::lock_guard lock(plugin.load_mutex);
  *now = !plugin.loaded;
  if (plugin.loaded) return FLHAL_OK;
  if (plugin.handle == nullptr) {
    PluginFile file;
    if (Refusal refusal = inspect_plugin_file(plugin.library_path, &file)) return refusal.as_status();
    Plugin fresh;                                  // a transaction: `plugin` is touched only when all went well
    if (Refusal refusal = load_library(file, plugin.id, fresh)) return refusal.as_status();
    if (fresh.has_streams != plugin.has_streams || fresh.has_ops != plugin.has_ops || fresh.has_kernels != plugin.has_kernels)
      return fail(FLHAL_E_ABI, "plugin {} was replaced by another build since its devices were counted; start the process again", plugin.id);
    for (const std::string& text : fresh.notes) load_report_note({"note", plugin.id, fmt::format("plugin {}: {}", plugin.id, text), ""});
    plugin.host = fresh.host;
    plugin.table = fresh.table;
    plugin.ops = fresh.ops;
    plugin.module_binary = fresh.module_binary;
    plugin.negotiated_minor = fresh.negotiated_minor;
    plugin.serialize_all = fresh.serialize_all;
    layers_attach(plugin);
    if (Refusal refusal = init_plugin(plugin)) {
      layers_detach(plugin);                       // the next try fills its tables anew
      return refusal.as_status();
    }
  }
  plugin.loaded = true;
  return FLHAL_OK;
}

// The chip of an index, as it was counted: is it still there?
Status check_still_there(Device& device) {
  std::vector<DeviceDescription> now;
  if (Refusal refusal = describe_devices(*device.plugin, &now)) return refusal.as_status();
  if (device.plugin_device >= now.size())
    return fail(FLHAL_E_DEVICE_LOST, "device {} is gone: plugin {} counted it before and has {} devices now", device.name, device.plugin->id, now.size());
  const DeviceDescription& d = now[device.plugin_device];
  if (!std::equal(d.uuid.begin(), d.uuid.end(), device.info.uuid) || d.chip != device.info.chip)
    return fail(FLHAL_E_DEVICE_LOST, "device {} is gone: another chip ({}) has its place in plugin {}", device.name, d.chip, device.plugin->id);
  return FLHAL_OK;
}

Status vanished(Device& device) {
  const std::string why = last_error_text();
  device.mark_lost(why.c_str());
  load_report_note({"error", device.name, fmt::format("the chip {} was counted and could not be opened: {}", device.name, why),
                    "see that its driver runs; flhal_device_reset_error tries again"});
  return fail(FLHAL_E_DEVICE_LOST, "device {} could not be opened: {}; see that its driver runs, then reset the device, or choose another one", device.name, why);
}

}  // namespace

void on_device_close(void (*hook)(Device*)) {
  std::lock_guard lock(g_hooks_mutex);
  g_close_hooks.push_back(hook);
}

Status Device::open() {
  const uint32_t now = state.load(std::memory_order_acquire);
  if (__builtin_expect(now == FLHAL_DEVICE_STATE_OPEN && !forked(), 1)) return FLHAL_OK;
  if (forked()) return forked_failure("flhal_device_open");
  if (g_shut_down.load(std::memory_order_acquire)) return shut_down_failure("flhal_device_open");
  std::lock_guard lock(open_mutex);
  if (state.load(std::memory_order_acquire) == FLHAL_DEVICE_STATE_OPEN) return FLHAL_OK;
  if (lost())
    return fail(FLHAL_E_DEVICE_LOST, "device {} is lost: {}; reset it with flhal_device_reset_error, or choose another one", name, lost_reason);
  FLHAL_TRY(config_load());                        // the first use: a bad setting is an error now
  bool just_loaded = false;
  if (!load_late(*plugin, &just_loaded).ok()) return vanished(*this);
  if (just_loaded && !check_still_there(*this).ok()) return vanished(*this);
  watch_slots();

  flhal_p_device* opened = nullptr;
  Refusal refusal = guarded(plugin->id, "device_open", [&]() -> Refusal {
    auto serial = plugin->lock();
    flhal_status answer = plugin->table.device_open(plugin->handle, plugin_device, &opened);
    if (answer == FLHAL_OK && opened == nullptr)
      return refuse(FLHAL_E_INTERNAL, fmt::format("plugin {}: device_open answered FLHAL_OK and gave no device", plugin->id), "report it to the plugin's maker");
    if (answer == FLHAL_OK) return {};
    if (answer > 0) return refuse(FLHAL_E_INTERNAL, fmt::format("plugin {}: device_open answered {}", plugin->id, answer), "report it to the plugin's maker");
    (void)plugin_answer(*plugin, "device_open", answer);
    return refuse(answer, last_error_text(), "");
  });
  if (refusal) {
    (void)refusal.as_status();
    return vanished(*this);
  }
  handle = opened;
  auto undo = [&](Status why) {
    auto serial = plugin->lock();
    plugin_call(plugin->table.device_close, std::exchange(handle, nullptr));
    default_stream = nullptr;
    pool = nullptr;
    return why;
  };
  Result<Stream*> stream = make_stream(this, 0);
  if (!stream.ok()) return undo(stream.status());
  default_stream = *stream;
  default_stream->is_default = true;
  Result<Pool*> made = make_pool(this);
  if (!made.ok()) {
    close_streams(this);
    return undo(made.status());
  }
  pool = *made;
  state.store(FLHAL_DEVICE_STATE_OPEN, std::memory_order_release);
  log(kLogInfo, "device {} opened ({} {}, plugin {} {})", name, info.vendor, info.product, plugin->id, plugin->version);
  return FLHAL_OK;
}

void Device::mark_lost(const char* why) {
  {
    // A lock of its own: this is called below stream locks.
    std::lock_guard lock(lost_mutex);
    if (lost()) return;
    lost_reason = why ? why : "";
    state.store(FLHAL_DEVICE_STATE_LOST, std::memory_order_release);
  }
  generation.fetch_add(1, std::memory_order_acq_rel);
  log(kLogError, "device {} is lost: {}", name, why ? why : "no reason was given");
}

Status Device::close() {
  std::lock_guard lock(open_mutex);
  if (handle == nullptr) return FLHAL_OK;
  Status first;
  if (!lost()) first = synchronize_device(this);
  end_workers(this);                               // also on a lost device: a slot may still be running
  run_close_hooks(this);                           // plans, modules, packed weights: what lies above core
  Refusal refusal = guarded(plugin->id, "device_close", [&]() -> Refusal {
    close_streams(this);                           // waits; then nothing is pending any more
    close_pinned(this);
    close_pool(this);                              // gives the slabs back
    default_stream = nullptr;
    auto serial = plugin->lock();
    plugin_call(plugin->table.device_close, std::exchange(handle, nullptr));
    return {};
  });
  if (!lost()) state.store(FLHAL_DEVICE_STATE_CLOSED, std::memory_order_release);
  generation.fetch_add(1, std::memory_order_acq_rel);
  return refusal ? refusal.as_status() : first;
}

Status Device::reset() {
  if (!lost()) return FLHAL_OK;
  FLHAL_TRY(close());
  {
    std::lock_guard lock(lost_mutex);
    lost_reason.clear();
    state.store(FLHAL_DEVICE_STATE_CLOSED, std::memory_order_release);
  }
  return open();
}

bool Device::stores(flhal_dtype dtype) const {
  return storage_dtypes.empty() || std::find(storage_dtypes.begin(), storage_dtypes.end(), dtype) != storage_dtypes.end();
}

Status check_device(const flhal_device* handle, const char* function) {
  if (forked()) return forked_failure(function);
  if (__builtin_expect(g_shut_down.load(std::memory_order_relaxed), 0)) return shut_down_failure(function);
  auto* device = reinterpret_cast<const Device*>(handle);
  if (device == nullptr || device->tag != kDeviceTag)
    return fail(FLHAL_E_INVALID, "{}: {} is not a device; give one that flhal_device_at returned", function, static_cast<const void*>(handle));
  return FLHAL_OK;
}

Status shut_down_all() {
  Status first;
  std::string text;
  if (devices_frozen()) {
    const Discovery& found = discovery();
    for (Device* device : found.devices) {
      Status status = device->close();
      if (!status.ok() && first.ok()) {
        first = status;
        text = last_error_text();
      }
    }
    for (const auto& plugin : found.plugins) shut_down_plugin(*plugin);
  }
  g_shut_down.store(true, std::memory_order_release);
  return first.ok() ? first : fail_text(first.code(), std::move(text));
}

}  // namespace flhal
