// src/core/fork_guard.cc: one flag, set in the child by pthread_atfork.
#include "core/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

namespace flhal {

bool g_forked = false;

void install_fork_guard() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(nullptr, nullptr, [] { g_forked = true; }); });
}

Status forked_failure(const char* function) {
  return fail(FLHAL_E_FORKED,
              "{}: process {} was forked from a process that already used flhal devices, and a chip cannot be shared that "
              "way; start the child with the spawn or forkserver method",
              function, static_cast<int>(getpid()));
}

}  // namespace flhal
