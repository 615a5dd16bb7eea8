// src/layers/trace.cc: the file, and one event per call.
#include "layers/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/fork_guard.h"
#include "core/log.h"
#include "layers/frame.h"
#include "layers/rules.h"
#include "layers/trace_arguments.h"

namespace flhal::layers {

// What a call says before it begins, since afterwards the handle or the view is gone.
struct Early {
  std::string arguments, payload;
};

namespace {

std::mutex& g_mutex = *new std::mutex;          // guards all below
FILE* g_file = nullptr;
bool g_text = false, g_payload = false, g_first = true;
std::string& g_path = *new std::string;         // as in the setting
std::string& g_opened = *new std::string;       // the file's name
std::string& g_error = *new std::string;
uint64_t g_written = 0;
std::vector<HandleNumbers>& g_numbers = *new std::vector<HandleNumbers>(kFrames);

bool is_release(SlotId slot) { return !info_of(slot).answers; }

void close_locked() {
  if (g_file == nullptr) return;
  if (!g_text) fputs("\n]\n", g_file);
  fclose(g_file);
  g_file = nullptr;
}

void open_locked() {
  std::string name = g_path;
  for (size_t at = name.find("%p"); at != std::string::npos; at = name.find("%p", at)) name.replace(at, 2, std::to_string(getpid()));
  g_opened = name;
  g_text = name.size() > 4 && name.compare(name.size() - 4, 4, ".txt") == 0;
  g_first = true;
  g_written = 0;
  g_file = fopen(name.c_str(), "we");
  if (g_file == nullptr) {
    g_error = fmt::format("the trace cannot be written to {}: {}; name another file with trace_file", name, strerror(errno));
    log_text(kLogError, "layers: " + g_error);
    return;
  }
  g_error.clear();
  if (!g_text) fputs("[", g_file);
}

void write(const SlotCall& call, uint64_t calls_begun, const std::string& arguments, const std::string& subject, const std::string& payload) {
  const char* known = status_text(call.answer);
  const std::string answer = known ? known : std::to_string(call.answer);
  const std::string name = std::string(call.info().name) + (subject.empty() ? "" : " " + subject);
  const double begin_us = static_cast<double>(call.begin_ns) / 1e3, us = static_cast<double>(call.ns()) / 1e3;
  std::string line;
  if (g_text) {
    line = fmt::format("{} thread {} at {:.3f} us +{:.3f} us {}: {} {} = {}{}{}\n", call.number, gettid(), begin_us, us, call.frame->id, name,
                       arguments, answer, call.injected ? " (by the layer fault)" : "", payload.empty() ? "" : " payload " + payload);
  } else {
    line = fmt::format(
        R"({}{{"name":{},"cat":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{"n":{},"begun":{},"plugin":{},"slot":"{}","answer":"{}"{},"arguments":{}{}}}}})",
        g_first ? "\n" : ",\n", json_text(name), json_text(call.frame->id), begin_us, us, getpid(), gettid(), call.number, calls_begun,
        json_text(call.frame->id), call.info().name, answer, call.injected ? ",\"injected\":true" : "", arguments,
        payload.empty() ? "" : ",\"payload\":\"" + payload + "\"");
  }
  g_first = false;
  ++g_written;
  fwrite(line.data(), 1, line.size(), g_file);
  fflush(g_file);
}

}  // namespace

void set_trace(const std::string& path, bool payload) {
  static const int once = atexit(close_trace);
  (void)once;
  std::lock_guard lock(g_mutex);
  g_payload = payload;
  if (g_file != nullptr && path == g_path) return;
  close_locked();
  g_path = path;
  open_locked();
}

void close_trace() {
  if (forked()) return;
  std::lock_guard lock(g_mutex);
  close_locked();
}

void trace_before(SlotCall& call) {
  const bool view_ends = call.slot == SlotId::host_end;
  if (!view_ends && !is_release(call.slot)) return;
  std::lock_guard lock(g_mutex);
  if (g_file == nullptr) return;
  call.early = new Early;
  HandleNumbers& numbers = g_numbers[size_t(call.frame->index)];
  call.early->payload = g_payload ? payload_of(call) : "";
  call.early->arguments = arguments_json(call, numbers);
  // From here on the plugin may give the same value to somebody else.
  const SlotInfo& info = call.info();
  const size_t last = info.n - 1u;              // memory_free(device, memory): the second; the others have one argument
  numbers.drop(view_ends ? Kind::kPointer : info.kinds[last], call.argument<const void*>(last));
}

void trace_after(SlotCall& call, uint64_t calls_begun) {
  const std::unique_ptr<Early> early(std::exchange(call.early, nullptr));
  std::lock_guard lock(g_mutex);
  if (g_file == nullptr) return;
  HandleNumbers& numbers = g_numbers[size_t(call.frame->index)];
  if (early) return write(call, calls_begun, early->arguments, "", early->payload);
  const std::string subject = subject_of(call, numbers);
  write(call, calls_begun, arguments_json(call, numbers), subject, g_payload ? payload_of(call) : "");
}

void forget_trace(int f) {
  std::lock_guard lock(g_mutex);
  g_numbers[size_t(f)].forget();
}

void add_trace(cJSON* root) {
  std::lock_guard lock(g_mutex);
  cJSON* item = cJSON_AddObjectToObject(root, "trace");
  json_add(item, "file", g_opened);
  json_add_number(item, "calls", g_written);
  json_add_if(item, "error", g_error);
}

}  // namespace flhal::layers
