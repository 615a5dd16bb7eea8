// conformance/areas/surroundings.h: what a plugin may change in its process without meaning to: threads, files, memory.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace flhal::conformance {

inline std::set<std::string> entries_of(const char* folder) {
  std::set<std::string> names;
  std::error_code error;
  for (auto& entry : std::filesystem::directory_iterator(folder, error)) names.insert(entry.path().filename().string());
  return names;
}
inline std::set<std::string> thread_ids() { return entries_of("/proc/self/task"); }
inline size_t open_files() { return entries_of("/proc/self/fd").size(); }

// Threads that end take a moment to leave /proc: gives those that are not in `before` a second.
inline std::set<std::string> threads_beyond(const std::set<std::string>& before) {
  std::set<std::string> beyond;
  for (int i = 0; i < 100; ++i) {
    beyond.clear();
    for (const std::string& id : thread_ids())
      if (!before.count(id)) beyond.insert(id);
    if (beyond.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return beyond;
}

// Bytes that malloc has handed out; slabs of plugins that map their own are not in it.
inline uint64_t heap_bytes() {
  struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}
inline uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Bit set of blocked signals of a thread, from /proc.
inline uint64_t blocked_signals(const std::string& thread_id) {
  std::ifstream in("/proc/self/task/" + thread_id + "/status");
  for (std::string word; in >> word;)
    if (word == "SigBlk:") {
      std::string mask;
      in >> mask;
      return std::stoull(mask, nullptr, 16);
    }
  return ~uint64_t{0};   // it has ended
}

}  // namespace flhal::conformance
