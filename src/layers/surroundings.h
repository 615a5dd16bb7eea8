// src/layers/surroundings.h: what a slot must leave as it was in the process: floating point, locale, signals, threads.
//
// The floating point word is read at every call (a few cycles); the rest around slots that are called rarely.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace flhal::layers {

unsigned floating_point_control();       // rounding, exceptions that trap, denormals; not the exceptions that have happened

struct Surroundings {
  std::string locale;
  std::vector<struct sigaction> handlers;   // of signals 1 to 31
  std::vector<int> threads;
};
Surroundings look_around();
std::vector<int> threads_of_process();
// The first signal that has another handler; 0 for none.
int changed_signal(const Surroundings& before, const Surroundings& after);
std::vector<int> new_threads(const Surroundings& before, const Surroundings& after);
bool takes_signals(int thread);          // does it leave one of SIGINT, SIGTERM, SIGCHLD or SIGALRM unblocked

// How often this thread has gone to sleep by itself.
uint64_t times_slept();

}  // namespace flhal::layers
