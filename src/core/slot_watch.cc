// src/core/slot_watch.cc: the wrappers, the records of running calls, and the look at them; see slot_watch.h.
//
// Threads: a record is written by its thread and read by the service thread; it is never given back, so reading is safe.
#include "core/slot_watch.h"

#include <atomic>
#include <vector>

#include "core/config.h"
#include "core/device.h"
#include "core/event.h"
#include "core/log.h"
#include "core/service.h"

namespace flhal {
namespace {

constexpr int kPlugins = 8;                 // more are not watched

struct Watched {
  Plugin* plugin = nullptr;
  flhal_plugin_table_v1 table{};            // the plugin's own
  flhal_ops_v1 ops{};
};
Watched g_watched[kPlugins];
std::atomic<int> g_n_watched{0};

struct Record {
  std::atomic<const char*> slot{nullptr};   // nullptr: no call is running
  std::atomic<const void*> object{nullptr}; // the slot's first argument
  std::atomic<int> plugin{0};
  std::atomic<uint64_t> since_ns{0};
  uint64_t told_since_ns = 0;               // the service thread's
};

std::mutex& g_mutex = *new std::mutex;
std::vector<Record*>& g_records = *new std::vector<Record*>;   // of all threads that ever made a call

Record& record_of_thread() {
  static thread_local Record* mine = [] {
    auto* made = new Record;
    std::lock_guard lock(g_mutex);
    g_records.push_back(made);
    return made;
  }();
  return *mine;
}

template <typename First, typename... More>
const void* first_of(First first, More...) { return static_cast<const void*>(first); }

class Running {
 public:
  Running(int plugin, const char* slot, const void* object) : record_(record_of_thread()) {
    record_.plugin.store(plugin, std::memory_order_relaxed);
    record_.object.store(object, std::memory_order_relaxed);
    record_.since_ns.store(now_ns(), std::memory_order_relaxed);
    record_.slot.store(slot, std::memory_order_release);
  }
  ~Running() { record_.slot.store(nullptr, std::memory_order_release); }
  Running(const Running&) = delete;

 private:
  Record& record_;
};

template <int P>
struct Wrapper {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  static result name parameters {                                      \
    Running running(P, #name, first_of arguments);                     \
    return g_watched[P].table.name arguments;                          \
  }
#include "core/slots.def"
#undef FLHAL_SLOT
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) \
  static result name parameters {                                      \
    Running running(P, #name, first_of arguments);                     \
    return g_watched[P].ops.name arguments;                            \
  }
#include "core/ops_slots.def"
#undef FLHAL_SLOT

  static void put(Plugin& plugin) {
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) plugin.table.name = name;
#include "core/slots.def"
#undef FLHAL_SLOT
#define FLHAL_SLOT(number, result, name, group, parameters, arguments) plugin.ops.name = name;
#include "core/ops_slots.def"
#undef FLHAL_SLOT
  }
};

template <int P>
void put_wrapper(Plugin& plugin, int at) {
  if (at == P) Wrapper<P>::put(plugin);
  else if constexpr (P > 0) put_wrapper<P - 1>(plugin, at);
}

// The device an object of the plugin belongs to, as far as core can tell; "" when it cannot.
std::string device_of(const Plugin* plugin, const void* object) {
  std::string only;
  int n = 0;
  for (Device* device : devices()) {
    if (device->plugin != plugin) continue;
    if (device->handle == object) return device->name;
    StreamFamily* family = family_of(device);
    std::lock_guard lock(family->mutex);
    for (Stream* stream : family->streams)
      if (stream->handle == object) return device->name;
    for (PluginEvent* event : family->all_events)
      if (event->handle == object) return device->name;
    only = device->name;
    ++n;
  }
  return n == 1 ? only : "";
}

uint64_t g_longest_ns = 0;                  // set before the service thread looks

void look() {
  std::vector<Record*> records;
  {
    std::lock_guard lock(g_mutex);
    records = g_records;
  }
  for (Record* record : records) {
    const char* slot = record->slot.load(std::memory_order_acquire);
    const uint64_t since = record->since_ns.load(std::memory_order_relaxed), now = now_ns();
    if (slot == nullptr || now < since + g_longest_ns || record->told_since_ns == since) continue;
    const Plugin* plugin = g_watched[record->plugin.load(std::memory_order_relaxed)].plugin;
    std::string device = device_of(plugin, record->object.load(std::memory_order_relaxed));
    if (record->slot.load(std::memory_order_acquire) != slot || record->since_ns.load(std::memory_order_relaxed) != since)
      continue;                             // it has returned meanwhile
    record->told_since_ns = since;
    log(kLogWarn, "slot {} of plugin {}{}{} has not returned for {} s; see whether the driver hangs (slow_slot_s is {})", slot,
        plugin->id, device.empty() ? "" : ", device ", device, (now - since) / 1000000000u, g_longest_ns / 1000000000u);
  }
}

}  // namespace

void watch_slots(Plugin& plugin) {
  const uint64_t seconds = strtoull(config_text("slow_slot_s").c_str(), nullptr, 10);
  if (seconds == 0) return;
  static std::mutex turn;
  std::lock_guard lock(turn);
  const int n = g_n_watched.load(std::memory_order_relaxed);
  for (int i = 0; i < n; ++i)
    if (g_watched[i].plugin == &plugin) return;
  if (n == kPlugins) return log(kLogWarn, "slow_slot_s: only the first {} plugins are watched, {} is not", kPlugins, plugin.id);
  g_longest_ns = seconds * 1000000000u;
  g_watched[n].table = plugin.table;
  g_watched[n].ops = plugin.ops;
  g_watched[n].plugin = &plugin;
  put_wrapper<kPlugins - 1>(plugin, n);
  g_n_watched.store(n + 1, std::memory_order_release);
  service_every(250, look);
}

}  // namespace flhal
