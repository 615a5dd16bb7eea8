// src/core/host_services.cc: the functions behind flhal_host_v1.
//
// Threads: plugins may call these from any thread, also from their own and at exit, so nothing here is ever destroyed and
// every function takes what it is given with suspicion (null texts, absurd alignments).
#include "core/host_services.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <cctype>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/log.h"
#include "core/plugin_table.h"

namespace flhal {
namespace {

struct Left {
  PluginError error;
  uint64_t count = 0;                        // texts so far, and the status of the last one: stay when the error is taken
  flhal_status last = FLHAL_OK;
};
thread_local Left* t_left __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<NotifyListener> g_notify{nullptr};

Left& left() {
  if (t_left == nullptr) {
    static pthread_key_t key;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] {
      pthread_key_create(&key, [](void* p) {
        t_left = nullptr;
        delete static_cast<Left*>(p);
      });
    });
    t_left = new Left;
    pthread_setspecific(key, t_left);
  }
  return *t_left;
}

constexpr size_t kTextMax = 4096;

void service_log(int32_t level, const char* text) {
  auto clamped = static_cast<LogLevel>(level < 0 ? 0 : level > 3 ? 3 : level);
  if (text != nullptr && log_enabled(clamped)) log_text(clamped, {text, strnlen(text, kTextMax)});
}

void service_set_error(flhal_status status, int64_t vendor_code, const char* text) {
  leave_plugin_error(status, vendor_code, text ? text : "");
}

void* service_alloc(uint64_t bytes, uint64_t align) {
  if (align < sizeof(void*)) align = sizeof(void*);
  void* p = nullptr;
  return posix_memalign(&p, align, bytes ? bytes : 1) == 0 ? p : nullptr;
}

void service_free(void* p) { free(p); }

void service_notify(uint64_t token, flhal_status status) {
  if (NotifyListener listener = g_notify.load(std::memory_order_acquire)) listener(token, status);
}

// A setting, or for a key that is not one of core's: the environment's FLHAL_<KEY> or TORCH_FL_<KEY>, so that a maker's
// own switches follow the same rule. Texts are interned: valid for the life of the process.
const char* service_config(const char* key) {
  if (key == nullptr || strnlen(key, 128) == 128) return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string>;
  std::string value = config_text(key);
  if (value.empty()) {
    std::string name;
    for (const char* c = key; *c; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) ? std::toupper(static_cast<unsigned char>(*c)) : '_';
    for (const char* prefix : {"FLHAL_", "TORCH_FL_"})
      if (const char* found = secure_getenv((prefix + name).c_str()); found && *found && value.empty()) value = found;
  }
  if (value.empty()) return nullptr;
  std::lock_guard lock(mutex);
  return texts.insert(std::move(value)).first->c_str();
}

uint64_t service_now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000ull + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

flhal_host_v1 host_services() {
  flhal_host_v1 host{};
  host.struct_size = sizeof host;
  host.struct_type = FLHAL_ST_HOST;
  host.abi_minor = FLHAL_PLUGIN_ABI_MINOR;
  host.oldest_plugin_minor = kOldestPluginMinor;
  host.log = service_log;
  host.set_error = service_set_error;
  host.alloc = service_alloc;
  host.free = service_free;
  host.notify = service_notify;
  host.config = service_config;
  host.now_ns = service_now_ns;
  return host;
}

void leave_plugin_error(flhal_status status, int64_t vendor_code, const char* text, const char* text_end) {
  Left& mine = left();
  ++mine.count;
  mine.last = status;
  PluginError& error = mine.error;
  error.status = status;
  error.vendor_code = vendor_code;
  error.text.assign(text, strnlen(text, kTextMax));
  error.text += text_end;
}

PluginError take_plugin_error(flhal_status answer) {
  if (t_left == nullptr) return {};
  PluginError taken = std::exchange(t_left->error, {});
  if (taken.status != answer) return {};
  return taken;
}

uint64_t plugin_texts_left() { return t_left ? t_left->count : 0; }
flhal_status last_plugin_status() { return t_left ? t_left->last : FLHAL_OK; }

void set_notify_listener(NotifyListener listener) { g_notify.store(listener, std::memory_order_release); }

// The name of a code, or its number for codes of drivers.
static std::string code_name(flhal_status code) {
  switch (code) {
#define X(name, value, meaning, remedy) \
  case value: return "FLHAL_" #name;
#include "core/status.def"
#undef X
    default: return fmt::format("the code {}", code);
  }
}

Status plugin_answer(const Plugin& plugin, const char* slot, flhal_status answer) {
  if (__builtin_expect(answer >= 0, 1)) return answer;
  PluginError left_text = take_plugin_error(answer);
  std::string text = left_text.text.empty()
                         ? fmt::format("plugin {}: {} answered {} and left no text", plugin.id, slot, code_name(answer))
                         : fmt::format("plugin {}: {}: {}", plugin.id, slot, left_text.text);
  return fail_text(answer, std::move(text), left_text.vendor_code);
}

}  // namespace flhal
