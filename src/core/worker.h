// src/core/worker.h: where async level 2 will live.
//
// Level 0: Stream::submit waits after every submission. Level 1: an asynchronous plugin queues by itself, others run in
// the caller. Level 2 shall give each stream of a plugin WITHOUT stream slots one worker thread. The seam is
// Stream::submit: its branch `!asynchronous` hands the slot call to the worker instead of making it, and `asynchronous`
// then means "the plugin has streams, or a worker runs them"; points, marks and retire() need no change, since
// completed_ is what the worker counts up. Two things submit() does not ask for today and level 2 needs: slot calls that
// own what they refer to (a call struct lives on the caller's stack), and host memory that outlives the call.
// Until then level 2 behaves like level 1.
#pragma once

namespace flhal {

inline constexpr bool kWorkersExist = false;

}  // namespace flhal
