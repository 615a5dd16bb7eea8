// reference_plugins/opencl/surroundings.h: keeps what a driver does to the process away from the program.
//
// A driver's first calls start threads and compilers. Threads inherit the signal mask of their maker, and LLVM installs
// handlers for a dozen signals (Ctrl-C among them, so Python would no longer see it): both are house rules of plugin.h.
#pragma once

#include <signal.h>

namespace flhal::opencl {

// While it lives: all signals blocked in this thread. At its end: the mask and every handler as before.
// Cost: 130 system calls; for slots that start or compile something, never for a launch.
class KeepSurroundings {
 public:
  KeepSurroundings() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask_);
    for (int i = 1; i < kSignals; ++i) sigaction(i, nullptr, &actions_[i]);
  }
  ~KeepSurroundings() {
    for (int i = 1; i < kSignals; ++i) {
      struct sigaction now {};
      if (sigaction(i, nullptr, &now) == 0 && now.sa_handler != actions_[i].sa_handler) sigaction(i, &actions_[i], nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  KeepSurroundings(const KeepSurroundings&) = delete;

 private:
  static constexpr int kSignals = 32;   // the classic ones; drivers have no business with real-time signals
  sigset_t mask_;
  struct sigaction actions_[kSignals] = {};
};

}  // namespace flhal::opencl
