// conformance/runner/host_table.cc: the functions behind flhal_host_v1.
//
// Threads: any, also the plugin's own and at exit: nothing here is destroyed.
#include "runner/host_table.h"

#include <fmt/format.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

namespace flhal::conformance {
namespace {

std::atomic<uint64_t> g_live_blocks{0}, g_late_calls{0};
std::atomic<bool> g_alive{false};
thread_local LeftError t_left;

void count_call() {
  if (!g_alive.load(std::memory_order_relaxed)) g_late_calls.fetch_add(1, std::memory_order_relaxed);
}

void log(int32_t level, const char* text) {
  count_call();
  fmt::print(stderr, "plugin log {}: {}\n", level, text != nullptr ? text : "(null)");
}
void set_error(flhal_status status, int64_t vendor_code, const char* text) {
  count_call();
  t_left = {true, status, vendor_code, text != nullptr ? text : ""};
}
void* alloc(uint64_t bytes, uint64_t align) {
  count_call();
  if (align < sizeof(void*)) align = sizeof(void*);
  void* p = nullptr;
  if (posix_memalign(&p, align, bytes != 0 ? bytes : 1) != 0) return nullptr;
  g_live_blocks.fetch_add(1, std::memory_order_relaxed);
  return p;
}
void release(void* p) {
  count_call();
  if (p != nullptr) g_live_blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}
void notify(uint64_t, flhal_status) { count_call(); }

// As core does: "mock.delay_ms" is the variable FLHAL_MOCK_DELAY_MS.
const char* config(const char* key) {
  count_call();
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::map<std::string, std::string>;
  std::lock_guard lock(mutex);
  std::string& name = names[key];
  if (name.empty()) {
    name = "FLHAL_";
    for (const char* c = key; *c != 0; ++c) name += *c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  return std::getenv(name.c_str());
}
uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

constexpr flhal_host_v1 kHost = {sizeof(flhal_host_v1), FLHAL_ST_HOST, nullptr, FLHAL_PLUGIN_ABI_MINOR, 0,
                                 log, set_error, alloc, release, notify, config, now_ns};

}  // namespace

const flhal_host_v1* host_table() { return &kHost; }

LeftError take_error() {
  LeftError left = std::move(t_left);
  t_left = LeftError();
  return left;
}

uint64_t host_live_blocks() { return g_live_blocks.load(); }
void host_life_begins() { g_alive.store(true); }
void host_life_ends() { g_alive.store(false); }
uint64_t host_late_calls() { return g_late_calls.load(); }

}  // namespace flhal::conformance
