// src/core/log.cc: one write(2) per line, so that lines of threads and processes do not mix.
#include "core/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace flhal {
namespace {

std::atomic<LogSink> g_sink{nullptr};

}  // namespace

void set_log_sink(LogSink sink) { g_sink.store(sink, std::memory_order_release); }

void log_text(LogLevel level, std::string_view text) {
  if (LogSink sink = g_sink.load(std::memory_order_acquire)) {
    sink(level, text);
    return;
  }
  static constexpr const char* kNames[] = {"error", "warn", "info", "debug"};
  std::string line = fmt::format("flhal {}: {}\n", kNames[level < 0 ? 0 : level > 3 ? 3 : level], text);
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace flhal
