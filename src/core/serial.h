// src/core/serial.h: entering a plugin that takes one call at a time, for callers that must not wait.
#pragma once

#include "core/plugin_table.h"

namespace flhal {

// Like Plugin::lock(), but gives up instead of waiting when another thread is inside.
class TrySerial {
 public:
  explicit TrySerial(Plugin& plugin) {
    if (plugin.serialize_all) lock_ = std::unique_lock(plugin.serialize_mutex, std::try_to_lock);
    entered_ = !plugin.serialize_all || lock_.owns_lock();
  }
  bool entered() const { return entered_; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool entered_;
};

}  // namespace flhal
