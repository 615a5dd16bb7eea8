// src/core/probe_child.cc: the parent's side of flhal-probe, on a libuv loop that lives for one scan.
#include "core/probe_child.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "core/description_json.h"
#include "core/search_path.h"

namespace flhal {

// In programs of this build tree that have libflhal inside, where the build put the helper; absent elsewhere.
extern const char* const flhal_probe_build_path __attribute__((weak));

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kAnswerMax = 8u << 20, kNoiseMax = 4096;
constexpr uint64_t kDrainMs = 200;      // after the child ended: a process it left behind may hold the pipe open

struct Child {
  ProbeTask* task = nullptr;
  uv_process_t process{};
  uv_pipe_t answer{}, noise{};
  uv_timer_t timer{};
  std::string answer_text, noise_text;
  Clock::time_point start = Clock::now();
  int64_t exit_status = 0;
  int signal = 0, open_pipes = 2, open_handles = 4;
  bool spawned = false, ended = false;
  char buffer[65536];
};

struct Scan {
  uv_loop_t loop{};
  std::string helper;
  uint64_t limit_ms = 0;
  std::vector<ProbeTask>* tasks = nullptr;
  size_t next = 0;
};

void start_next(Scan& scan);
void finish(Child& child);

// Step and answer line of what the child wrote.
void read_lines(const std::string& text, std::string* step, std::string* answer) {
  size_t start = 0;
  while (start < text.size()) {
    size_t end = std::min(text.find('\n', start), text.size());
    if (text[start] == '@') *step = text.substr(start + 1, end - start - 1);
    if (text[start] == '{') *answer = text.substr(start, end - start);
    start = end + 1;
  }
}

std::string last_line(const std::string& noise) {
  std::string text = clean_text(noise.c_str());
  size_t end = text.find_last_not_of(" ");
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

void judge(Child& child, uint64_t limit_ms) {
  ProbeTask& task = *child.task;
  task.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - child.start).count();
  std::string step, answer;
  read_lines(child.answer_text, &step, &answer);
  const std::string who = task.expected_id.empty() ? std::filesystem::path(task.library).filename().string() : task.expected_id;
  std::string noise = last_line(child.noise_text);
  if (!noise.empty()) noise = fmt::format(" (it wrote: {})", noise);
  JsonOwner root(answer.empty() ? nullptr : cJSON_ParseWithLength(answer.c_str(), answer.size()));
  if (root != nullptr) {
    if (!json_bool(root.get(), "well")) {
      task.refusal = refuse(FLHAL_E_INTERNAL, clean_text(json_string(root.get(), "reason").c_str()), clean_text(json_string(root.get(), "remedy").c_str()));
      const cJSON* code = cJSON_GetObjectItemCaseSensitive(root.get(), "code");
      if (cJSON_IsNumber(code) && code->valuedouble < 0 && code->valuedouble > -2147483648.0) task.refusal.code = static_cast<flhal_status>(code->valuedouble);
    } else {
      task.refusal = description_from_json(cJSON_GetObjectItemCaseSensitive(root.get(), "plugin"), &task.description);
      if (!task.refusal && (child.signal != 0 || child.exit_status != 0))
        task.description.notes.push_back("it answered well and its slot shutdown then hung or crashed");
    }
    return;
  }
  if (step.empty()) step = "starting";
  if (task.timed_out) {
    task.refusal = refuse(FLHAL_E_TIMEOUT, fmt::format("plugin {} did not answer within {} ms, in {}; the child that asked it was stopped{}", who, limit_ms, step, noise),
                          "raise FLHAL_PROBE_TIMEOUT_MS if its driver is slow to start, or take the plugin out of the search");
  } else if (child.signal != 0) {
    task.refusal = refuse(FLHAL_E_INTERNAL, fmt::format("plugin {} crashed in {} (signal {}, {}){}", who, step, child.signal, strsignal(child.signal), noise),
                          "report it to the plugin's maker, or take the plugin out of the search");
  } else {
    task.refusal = refuse(FLHAL_E_INTERNAL, fmt::format("plugin {} ended the process with exit({}) in {}{}", who, child.exit_status, step, noise),
                          "report it to the plugin's maker: a plugin may not call exit");
  }
}

void close_pipes(Child& child) {
  for (uv_pipe_t* pipe : {&child.answer, &child.noise})
    if (!uv_is_closing(reinterpret_cast<uv_handle_t*>(pipe)))
      uv_close(reinterpret_cast<uv_handle_t*>(pipe), [](uv_handle_t* h) {
        Child& c = *static_cast<Child*>(h->data);
        --c.open_pipes;
        --c.open_handles;
        finish(c);
      });
}

// Everything of the child is over: judge it, free it, start the next.
void finish(Child& child) {
  if (child.open_pipes == 0 && child.ended && !uv_is_closing(reinterpret_cast<uv_handle_t*>(&child.timer))) {
    auto closed = [](uv_handle_t* h) {
      Child& c = *static_cast<Child*>(h->data);
      --c.open_handles;
      finish(c);
    };
    uv_close(reinterpret_cast<uv_handle_t*>(&child.timer), closed);
    uv_close(reinterpret_cast<uv_handle_t*>(&child.process), closed);
  }
  if (child.open_handles != 0) return;
  Scan& scan = *static_cast<Scan*>(child.process.loop->data);
  if (child.spawned) judge(child, scan.limit_ms);
  delete &child;
  start_next(scan);
}

void read_into(uv_stream_t* pipe, std::string* text, size_t keep, ssize_t n, const uv_buf_t* buffer) {
  Child& child = *static_cast<Child*>(pipe->data);
  if (n > 0) {
    if (text->size() < keep) text->append(buffer->base, std::min(static_cast<size_t>(n), keep - text->size()));
    return;
  }
  if (n < 0 && !uv_is_closing(reinterpret_cast<uv_handle_t*>(pipe)))
    uv_close(reinterpret_cast<uv_handle_t*>(pipe), [](uv_handle_t* h) {
      Child& c = *static_cast<Child*>(h->data);
      --c.open_pipes;
      --c.open_handles;
      finish(c);
    });
  (void)child;
}

void start_next(Scan& scan) {
  if (scan.next >= scan.tasks->size()) return;
  auto* child = new Child;
  child->task = &(*scan.tasks)[scan.next++];
  uv_pipe_init(&scan.loop, &child->answer, 0);
  uv_pipe_init(&scan.loop, &child->noise, 0);
  uv_timer_init(&scan.loop, &child->timer);
  child->process.data = child->answer.data = child->noise.data = child->timer.data = child;

  uv_stdio_container_t stdio[4];
  stdio[0].flags = stdio[1].flags = UV_IGNORE;
  stdio[2].flags = stdio[3].flags = static_cast<uv_stdio_flags>(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
  stdio[2].data.stream = reinterpret_cast<uv_stream_t*>(&child->noise);
  stdio[3].data.stream = reinterpret_cast<uv_stream_t*>(&child->answer);
  std::string limit = std::to_string(scan.limit_ms);
  char* arguments[] = {scan.helper.data(), child->task->library.data(), child->task->expected_id.data(), limit.data(), nullptr};
  uv_process_options_t options{};
  options.file = scan.helper.c_str();
  options.args = arguments;
  options.stdio = stdio;
  options.stdio_count = 4;
  options.flags = UV_PROCESS_DETACHED;          // a group of its own: what it starts is stopped with it
  options.exit_cb = [](uv_process_t* process, int64_t status, int signal) {
    Child& c = *static_cast<Child*>(process->data);
    c.exit_status = status;
    c.signal = signal;
    c.ended = true;
    uv_timer_start(&c.timer, [](uv_timer_t* t) { close_pipes(*static_cast<Child*>(t->data)); }, kDrainMs, 0);
    finish(c);
  };
  int error = uv_spawn(&scan.loop, &child->process, &options);
  if (error != 0) {
    child->task->refusal = refuse(FLHAL_E_INTERNAL, fmt::format("the helper {} could not be started: {}", scan.helper, uv_strerror(error)),
                                  "make it executable, or install flhal again");
    child->ended = true;
    close_pipes(*child);
    return;
  }
  child->spawned = true;
  auto allocate = [](uv_handle_t* h, size_t, uv_buf_t* out) {
    Child& c = *static_cast<Child*>(h->data);
    *out = uv_buf_init(c.buffer, sizeof c.buffer);
  };
  uv_read_start(reinterpret_cast<uv_stream_t*>(&child->answer), allocate, [](uv_stream_t* pipe, ssize_t n, const uv_buf_t* buffer) {
    read_into(pipe, &static_cast<Child*>(pipe->data)->answer_text, kAnswerMax, n, buffer);
  });
  uv_read_start(reinterpret_cast<uv_stream_t*>(&child->noise), allocate, [](uv_stream_t* pipe, ssize_t n, const uv_buf_t* buffer) {
    read_into(pipe, &static_cast<Child*>(pipe->data)->noise_text, kNoiseMax, n, buffer);
  });
  uv_timer_start(&child->timer, [](uv_timer_t* t) {
    Child& c = *static_cast<Child*>(t->data);
    c.task->timed_out = true;
    kill(-c.process.pid, SIGKILL);
    uv_process_kill(&c.process, SIGKILL);
  }, scan.limit_ms, 0);
}

}  // namespace

std::string probe_helper() {
  auto executable = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  if (const char* named = secure_getenv("FLHAL_PROBE_HELPER"); named && *named) return executable(named) ? named : "";
  if (const std::string folder = own_folder(); !folder.empty())
    for (const char* relative : {"flhal-probe", "../libexec/flhal/flhal-probe", "../../libexec/flhal/flhal-probe", "../bin/flhal-probe"})
      if (std::string path = folder + "/" + relative; executable(path)) return std::filesystem::path(path).lexically_normal().string();
  if (&flhal_probe_build_path != nullptr && executable(flhal_probe_build_path)) return flhal_probe_build_path;
  return "";
}

void probe_in_children(const std::string& helper, uint64_t limit_ms, std::vector<ProbeTask>& tasks) {
  if (tasks.empty()) return;
  // libuv needs SIGCHLD while a child runs and leaves its default action behind. The program's own action is put back,
  // and told of children of its own that may have ended meanwhile: a spurious SIGCHLD is legal, a missed one is not.
  struct sigaction before{};
  sigaction(SIGCHLD, nullptr, &before);
  Scan scan;
  scan.helper = helper;
  scan.limit_ms = limit_ms;
  scan.tasks = &tasks;
  uv_loop_init(&scan.loop);
  scan.loop.data = &scan;
  for (int i = 0; i < kProbesAtOnce; ++i) start_next(scan);
  uv_run(&scan.loop, UV_RUN_DEFAULT);
  uv_loop_close(&scan.loop);
  sigaction(SIGCHLD, &before, nullptr);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) kill(getpid(), SIGCHLD);
}

}  // namespace flhal
