// src/layers/clocks.cc: counting, and the comparison of accesses.
#include "layers/clocks.h"

namespace flhal::layers {

Clocks& clocks() {
  static Clocks& all = *new Clocks;
  return all;
}

int Clocks::take() {
  if (!free.empty()) {
    const int stream = free.back();
    free.pop_back();
    ended.raise(stream, submitted.at(stream));   // of its last owner
    behind[static_cast<size_t>(stream)] = Clock();
    return stream;
  }
  behind.emplace_back();
  return static_cast<int>(behind.size()) - 1;
}

void Clocks::saw_end(int stream, uint64_t count) {
  ended.raise(stream, count);
  if (count == submitted.at(stream)) ended.join(behind[static_cast<size_t>(stream)]);
}

void Accesses::add(const Access& access) {
  only_stream_ = only_stream_ == -1 || only_stream_ == access.stream ? access.stream : -2;
  if (ring_.size() < kKept) {
    ring_.push_back(access);
    return;
  }
  ring_[next_] = access;
  next_ = (next_ + 1) % kKept;
}

const Access* Accesses::conflict(const Access& mine) const {
  if (only_stream_ == -1 || only_stream_ == mine.stream) return nullptr;
  const Clocks& all = clocks();
  for (const Access& other : ring_) {
    if (other.low >= mine.high || mine.low >= other.high || !(other.writes || mine.writes)) continue;
    if (!all.is_behind(mine.stream, other.stream, other.count)) return &other;
  }
  return nullptr;
}

bool Accesses::in_use() const {
  for (const Access& access : ring_)
    if (!clocks().over(access.stream, access.count)) return true;
  return false;
}

Accesses& host_accesses() {
  static Accesses& all = *new Accesses;
  return all;
}

void Uses::add(int stream, uint64_t count) {
  for (auto& [known, last] : last_) {
    if (known != stream) continue;
    last = count;
    return;
  }
  last_.emplace_back(stream, count);
}

bool Uses::unfinished() const {
  for (const auto& [stream, count] : last_)
    if (!clocks().over(stream, count)) return true;
  return false;
}

}  // namespace flhal::layers
