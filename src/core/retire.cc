// src/core/retire.cc: the one list of things that wait to be given back.
//
// Idea: an entry is released when all its points are reached. retire() looks once and releases at once where it can;
// everybody who waits or allocates looks at the rest on the way.
// Threads: g_mutex guards the list only; neither reached() nor a release runs under it, and both may call retire() again.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/fork_guard.h"
#include "core/stream.h"

namespace flhal {

namespace {

struct Entry {
  std::vector<Point> points;                // those that were not reached when last looked at
  void (*release)(void*);
  void* context;
};

std::mutex g_mutex;
std::vector<Entry>* g_list = new std::vector<Entry>();   // never destroyed: releases come until the process is gone
std::atomic<uint64_t> g_pending{0};

}  // namespace

uint64_t retire_pending() { return g_pending.load(std::memory_order_acquire); }

void retire(const Point* points, uint32_t n_points, void (*release)(void*), void* ctx) {
  if (forked()) return;
  bool due = true;
  for (uint32_t i = 0; i < n_points && due; ++i) due = points[i].stream->reached(points[i].sequence);
  if (due) {
    release(ctx);
    return;
  }
  try {
    Entry entry{{points, points + n_points}, release, ctx};
    std::lock_guard lock(g_mutex);
    g_list->push_back(std::move(entry));
    g_pending.fetch_add(1, std::memory_order_release);
  } catch (...) {
    // No memory for the entry: the thing is kept for ever, which is safe; giving it back now would not be.
  }
}

void retire_poll() {
  if (g_pending.load(std::memory_order_acquire) == 0 || forked()) return;
  std::vector<Entry> entries;
  {
    std::lock_guard lock(g_mutex);
    entries.swap(*g_list);
  }
  // Each stream is asked once, for the latest point that anything waits for; then looking at an entry is a comparison.
  std::vector<Point> latest;
  for (const Entry& entry : entries) {
    for (const Point& point : entry.points) {
      auto known = std::find_if(latest.begin(), latest.end(), [&](const Point& p) { return p.stream == point.stream; });
      if (known == latest.end()) latest.push_back(point);
      else known->sequence = std::max(known->sequence, point.sequence);
    }
  }
  for (const Point& point : latest) (void)point.stream->reached(point.sequence);
  std::vector<Entry> due;
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    std::erase_if(entry.points, [](const Point& p) { return p.stream->known_reached(p.sequence); });
    if (entry.points.empty()) {
      due.push_back(std::move(entry));
    } else {
      if (kept != i) entries[kept] = std::move(entry);
      ++kept;
    }
  }
  entries.resize(kept);
  {
    std::lock_guard lock(g_mutex);
    g_list->insert(g_list->begin(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
    g_pending.fetch_sub(due.size(), std::memory_order_release);
  }
  for (Entry& entry : due) entry.release(entry.context);
}

}  // namespace flhal
