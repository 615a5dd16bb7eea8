// src/core/caller_threads.h: how many OpenMP threads a call may use, carried from the caller to the worker.
//
// The number is a property of the calling thread (torch.set_num_threads sets it there), and plugins for the host's own
// processor read it inside their slots. A worker takes over the caller's, or the setting would not reach queued calls.
#pragma once

namespace flhal {

int caller_threads();                       // 0 when the process has no OpenMP runtime
void take_caller_threads(int threads);      // 0: nothing
void find_openmp();                         // looks for the runtime again; what is not loaded is not loaded by us

}  // namespace flhal
