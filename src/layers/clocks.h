// src/layers/clocks.h: which queued work is known to be over, and which is ordered before which; for missing waits.
//
// Idea: every stream counts what is put on it. A Clock says for each stream up to which count something is ordered behind it:
// a stream's next work is behind its own past, behind the records it waits for, and behind what the host has seen to have
// ended. Two accesses of the same bytes, one a write, are a missing wait when the later stream's clock does not reach the earlier
// access. The host counts as one: what any thread has seen to end, work submitted later by any thread is behind. So a wait
// that is missing may be overlooked, and one that is there is never denied.
// Threads: guarded by validate's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "layers/slot_call.h"

namespace flhal::layers {

class Clock {
 public:
  uint64_t at(int stream) const { return static_cast<size_t>(stream) < counts_.size() ? counts_[static_cast<size_t>(stream)] : 0; }
  void raise(int stream, uint64_t count) {
    if (counts_.size() <= static_cast<size_t>(stream)) counts_.resize(static_cast<size_t>(stream) + 1);
    counts_[static_cast<size_t>(stream)] = std::max(counts_[static_cast<size_t>(stream)], count);
  }
  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
  }

 private:
  std::vector<uint64_t> counts_;
};

// All streams of all plugins.
struct Clocks {
  Clock submitted;                       // what was put on each
  Clock ended;                           // what the host has seen to have ended
  std::vector<Clock> behind;             // per stream: what its next work is ordered behind, besides `ended`
  std::vector<int> free;

  int take();                            // a place for a new stream
  void give_back(int stream) { free.push_back(stream); }
  uint64_t submit(int stream) {
    const uint64_t n = submitted.at(stream) + 1;
    submitted.raise(stream, n);
    return n;
  }
  bool over(int stream, uint64_t count) const { return ended.at(stream) >= count; }
  bool is_behind(int stream, int other, uint64_t count) const {   // stream -1: the host
    return stream == other || ended.at(other) >= count || (stream >= 0 && behind[static_cast<size_t>(stream)].at(other) >= count);
  }
  void saw_end(int stream, uint64_t count);    // and with it what that work was behind
};
Clocks& clocks();

struct Access {
  uint64_t low, high;
  int stream;
  uint64_t count;                        // of its stream
  uint64_t call;
  SlotId slot;
  bool writes;
};

// The last accesses of a slab by queued work; older ones are forgotten.
class Accesses {
 public:
  static constexpr size_t kKept = 256;
  void add(const Access& access);
  // The first access that `mine` conflicts with and is not ordered behind; nullptr when there is none.
  const Access* conflict(const Access& mine) const;
  bool in_use() const;                   // by work that nobody has seen to end

 private:
  std::vector<Access> ring_;
  size_t next_ = 0;
  int only_stream_ = -1;                 // -1: none yet; -2: several
};

Accesses& host_accesses();               // of host memory that chips copy from and to, by address

// Work that needs an object as a whole: a module, a plan, an event.
class Uses {
 public:
  void add(int stream, uint64_t count);
  bool unfinished() const;

 private:
  std::vector<std::pair<int, uint64_t>> last_;
};

}  // namespace flhal::layers
