// src/layers/surroundings.cc: asking the C library and the kernel.
#include "layers/surroundings.h"

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <algorithm>

namespace flhal::layers {

unsigned floating_point_control() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
  return static_cast<unsigned>(fegetround());
#endif
}

std::vector<int> threads_of_process() {
  std::vector<int> threads;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return threads;
  while (const dirent* entry = readdir(tasks))
    if (int id = atoi(entry->d_name); id > 0) threads.push_back(id);
  closedir(tasks);
  return threads;
}

Surroundings look_around() {
  Surroundings now;
  const char* locale = setlocale(LC_ALL, nullptr);
  now.locale = locale ? locale : "";
  now.handlers.resize(32);
  for (int s = 1; s < 32; ++s)
    if (s != SIGKILL && s != SIGSTOP) (void)sigaction(s, nullptr, &now.handlers[static_cast<size_t>(s)]);
  now.threads = threads_of_process();
  return now;
}

int changed_signal(const Surroundings& before, const Surroundings& after) {
  for (int s = 1; s < 32; ++s)
    if (before.handlers[static_cast<size_t>(s)].sa_handler != after.handlers[static_cast<size_t>(s)].sa_handler) return s;
  return 0;
}

std::vector<int> new_threads(const Surroundings& before, const Surroundings& after) {
  std::vector<int> fresh;
  for (int id : after.threads)
    if (std::find(before.threads.begin(), before.threads.end(), id) == before.threads.end()) fresh.push_back(id);
  return fresh;
}

bool takes_signals(int thread) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;            // it has ended
  unsigned long long blocked = ~0ull;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, nullptr, 16);
  fclose(file);
  for (int s : {SIGINT, SIGTERM, SIGCHLD, SIGALRM})
    if ((blocked >> (s - 1) & 1) == 0) return true;
  return false;
}

uint64_t times_slept() {
  rusage used{};
  return getrusage(RUSAGE_THREAD, &used) == 0 ? static_cast<uint64_t>(used.ru_nvcsw) : 0;
}

}  // namespace flhal::layers
