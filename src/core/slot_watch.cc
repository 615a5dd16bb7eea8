// src/core/slot_watch.cc: the records of running calls, and the look at them; see slot_watch.h.
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
#include "layers/frame.h"

namespace flhal {

struct SlotRecord {
  std::atomic<const char*> slot{nullptr};   // nullptr: no call is running
  std::atomic<const void*> object{nullptr}; // the slot's first argument
  std::atomic<const Plugin*> plugin{nullptr};
  std::atomic<uint64_t> since_ns{0};
  uint64_t told_since_ns = 0;               // the service thread's
};

namespace {

std::mutex& g_mutex = *new std::mutex;
std::vector<SlotRecord*>& g_records = *new std::vector<SlotRecord*>;   // of all threads that ever made a call

thread_local constinit SlotRecord* t_record = nullptr;

SlotRecord* record_of_thread() {
  if (t_record == nullptr) {
    t_record = new SlotRecord;
    std::lock_guard lock(g_mutex);
    g_records.push_back(t_record);
  }
  return t_record;
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
  std::vector<SlotRecord*> records;
  {
    std::lock_guard lock(g_mutex);
    records = g_records;
  }
  for (SlotRecord* record : records) {
    const char* slot = record->slot.load(std::memory_order_acquire);
    const uint64_t since = record->since_ns.load(std::memory_order_relaxed), now = now_ns();
    if (slot == nullptr || now < since + g_longest_ns || record->told_since_ns == since) continue;
    const Plugin* plugin = record->plugin.load(std::memory_order_relaxed);
    std::string device = device_of(plugin, record->object.load(std::memory_order_relaxed));
    if (record->slot.load(std::memory_order_acquire) != slot || record->since_ns.load(std::memory_order_relaxed) != since)
      continue;                             // it has returned meanwhile
    record->told_since_ns = since;
    log(kLogWarn, "slot {} of plugin {}{}{} has not returned for {} s; see whether the driver hangs (slow_slot_s is {})", slot,
        plugin->id, device.empty() ? "" : ", device ", device, (now - since) / 1000000000u, g_longest_ns / 1000000000u);
  }
}

}  // namespace

SlotRecord* watch_enter(const Plugin* plugin, const char* slot, const void* object) {
  SlotRecord* record = record_of_thread();
  record->plugin.store(plugin, std::memory_order_relaxed);
  record->object.store(object, std::memory_order_relaxed);
  record->since_ns.store(now_ns(), std::memory_order_relaxed);
  record->slot.store(slot, std::memory_order_release);
  return record;
}

void watch_leave(SlotRecord* record) { record->slot.store(nullptr, std::memory_order_release); }

void watch_slots() {
  const uint64_t seconds = strtoull(config_text("slow_slot_s").c_str(), nullptr, 10);
  if (seconds == 0) return;
  static const bool once = [seconds] {
    g_longest_ns = seconds * 1000000000u;
    layers_watch();
    service_every(250, look);
    return true;
  }();
  (void)once;
}

}  // namespace flhal
