// src/core/fork_guard.h: a forked child frees silently and is refused everything else with one sentence.
//
// Idea: pthread_atfork sets one flag in the child. Nothing else is done there: no lock is taken, no plugin is called.
#pragma once

#include "core/status.h"

namespace flhal {

extern bool g_forked;                       // true in a child of fork() of a process that had used flhal
void install_fork_guard();                  // idempotent; called by the first count
Status forked_failure(const char* function);  // the sentence

inline bool forked() { return __builtin_expect(g_forked, 0); }

}  // namespace flhal
