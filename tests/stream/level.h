// tests/stream/level.h: an async level for one scope, and a queued call that waits until the test lets it go.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/config.h"
#include "core/worker.h"
#include "stream/chips.h"

namespace flhal::test {

// Sanitizers make everything ten times slower, and what they look for shows in the first rounds.
inline constexpr int kFewer = FLHAL_TEST_SANITIZE[0] ? 10 : 1;

class Level {
 public:
  explicit Level(const char* level) { REQUIRE_OK(config_set("async_level", level)); }
  ~Level() { (void)config_set("async_level", "1"); }
  Level(const Level&) = delete;
};

// Holds a stream's worker until it is opened or gone.
class Gate {
 public:
  explicit Gate(Stream* stream) {
    REQUIRE(stream->queues_calls());
    REQUIRE_OK(stream->queue(work_of("gate", [state = state_](Stream*) -> Status {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->is_open; });
      return FLHAL_OK;
    })));
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  void open() {
    std::lock_guard lock(state_->mutex);
    state_->is_open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace flhal::test
