// src/core/log.h: one line per event on standard error (or a sink), filtered by log_level. Never calls Python.
#pragma once

#include <fmt/core.h>

#include <string_view>

#include "core/config.h"

namespace flhal {

enum LogLevel : int32_t { kLogError = 0, kLogWarn = 1, kLogInfo = 2, kLogDebug = 3 };

void log_text(LogLevel level, std::string_view text);

// Lines go to `sink` instead of standard error; nullptr turns it back. The sink may run on any thread.
using LogSink = void (*)(LogLevel level, std::string_view text);
void set_log_sink(LogSink sink);

inline bool log_enabled(LogLevel level) { return config().log_level.load(std::memory_order_relaxed) >= level; }

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace flhal
