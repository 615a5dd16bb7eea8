// conformance/runner/groups.cc: child processes by libuv.
//
// Idea: a Worker is one child at a time with the ids that are left of its group. Each line from the child re-arms the timer.
// When the child ends in the middle of a case, that case is the crash or the timeout, and the next child takes the rest.
// Threads: one; everything happens in callbacks of one loop.
#include "runner/groups.h"

#include <fmt/format.h>
#include <signal.h>
#include <uv.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>

#include "runner/duties.h"
#include "runner/json.h"

extern char** environ;

namespace flhal::conformance {
namespace {

constexpr size_t kNoiseKept = 2000;        // last bytes of the child's output, shown with a crash

struct Process;
struct Handler {
  std::function<void(Process&, const std::string& line)> on_line;
  std::function<void(Process&)> on_end;
};

struct Process {
  uv_process_t process{};
  uv_pipe_t answers{}, noise{};
  uv_timer_t timer{};
  std::string pending, noise_text;
  Handler handler;
  int open_handles = 0;
  bool exited = false, timed_out = false, answers_closed = false, noise_closed = false, closing = false;
  int64_t status = 0;
  int signal = 0;
  int spawn_error = 0;
  char buffer[65536];

  std::string ending() const {
    if (spawn_error != 0) return fmt::format("could not be started: {}", uv_strerror(spawn_error));
    if (timed_out) return "ran past its time limit";
    if (signal != 0) return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
    if (status != 0) return fmt::format("ended with exit status {}", status);
    return "";
  }
};

void on_closed(uv_handle_t* handle) {
  auto* p = static_cast<Process*>(handle->data);
  if (--p->open_handles != 0) return;
  p->handler.on_end(*p);
  delete p;
}

void close_when_over(Process& p) {
  if (!p.exited || !p.answers_closed || !p.noise_closed || p.closing) return;
  p.closing = true;
  uv_close(reinterpret_cast<uv_handle_t*>(&p.timer), on_closed);
  uv_close(reinterpret_cast<uv_handle_t*>(&p.process), on_closed);
}

void on_pipe_closed(uv_handle_t* handle) {
  auto* p = static_cast<Process*>(handle->data);
  (handle == reinterpret_cast<uv_handle_t*>(&p->answers) ? p->answers_closed : p->noise_closed) = true;
  close_when_over(*p);
  on_closed(handle);
}

void close_pipe(uv_pipe_t* pipe) {
  auto* handle = reinterpret_cast<uv_handle_t*>(pipe);
  if (!uv_is_closing(handle)) uv_close(handle, on_pipe_closed);
}

void take_lines(Process& p) {
  for (size_t end; (end = p.pending.find('\n')) != std::string::npos;) {
    std::string line = p.pending.substr(0, end);
    p.pending.erase(0, end + 1);
    p.handler.on_line(p, line);
  }
}

void kill_process(Process& p) {
  if (p.exited) return;
  ::kill(-p.process.pid, SIGKILL);         // its own group: what the case started goes with it
  uv_process_kill(&p.process, SIGKILL);
}

void arm(Process& p, uint64_t limit_ms) {
  uv_timer_start(&p.timer, [](uv_timer_t* t) {
    auto* p = static_cast<Process*>(t->data);
    p->timed_out = true;
    kill_process(*p);
  }, limit_ms, 0);
}

void start(uv_loop_t* loop, const std::string& program, const std::vector<std::string>& arguments,
           const std::vector<std::pair<std::string, std::string>>& environment, uint64_t limit_ms, Handler handler) {
  auto* p = new Process;
  p->handler = std::move(handler);
  uv_pipe_init(loop, &p->answers, 0);
  uv_pipe_init(loop, &p->noise, 0);
  uv_timer_init(loop, &p->timer);
  p->process.data = p->answers.data = p->noise.data = p->timer.data = p;
  p->open_handles = 4;

  uv_stdio_container_t stdio[4];
  stdio[0].flags = UV_IGNORE;
  stdio[1].flags = stdio[2].flags = stdio[3].flags = static_cast<uv_stdio_flags>(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
  stdio[2].data.stream = reinterpret_cast<uv_stream_t*>(&p->noise);
  stdio[3].data.stream = reinterpret_cast<uv_stream_t*>(&p->answers);
  stdio[1].flags = UV_IGNORE;              // plugins that print to standard output do not disturb TAP
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> added;
  for (auto& [name, value] : environment) added.push_back(name + "=" + value);
  std::vector<char*> env;
  for (char** e = environ; *e != nullptr; ++e) {
    bool replaced = false;
    for (auto& [name, value] : environment)
      replaced |= std::strncmp(*e, name.c_str(), name.size()) == 0 && (*e)[name.size()] == '=';
    if (!replaced) env.push_back(*e);
  }
  for (std::string& a : added) env.push_back(a.data());
  env.push_back(nullptr);

  uv_process_options_t options{};
  options.file = program.c_str();
  options.args = argv.data();
  options.env = env.data();
  options.stdio = stdio;
  options.stdio_count = 4;
  options.flags = UV_PROCESS_DETACHED;
  options.exit_cb = [](uv_process_t* process, int64_t status, int signal) {
    auto* p = static_cast<Process*>(process->data);
    p->exited = true;
    p->status = status;
    p->signal = signal;
    // What the child started may hold the pipes open; its own words have been read or are about to be.
    uv_timer_start(&p->timer, [](uv_timer_t* t) {
      auto* p = static_cast<Process*>(t->data);
      ::kill(-p->process.pid, SIGKILL);
      close_pipe(&p->answers);
      close_pipe(&p->noise);
    }, 200, 0);
    close_when_over(*p);
  };
  p->spawn_error = uv_spawn(loop, &p->process, &options);
  if (p->spawn_error != 0) {
    p->exited = true;
    close_pipe(&p->answers);
    close_pipe(&p->noise);
    return;
  }
  auto allocate = [](uv_handle_t* h, size_t, uv_buf_t* out) {
    auto* p = static_cast<Process*>(h->data);
    *out = uv_buf_init(p->buffer, sizeof p->buffer);
  };
  uv_read_start(reinterpret_cast<uv_stream_t*>(&p->answers), allocate, [](uv_stream_t* pipe, ssize_t n, const uv_buf_t* buffer) {
    auto* p = static_cast<Process*>(pipe->data);
    if (n > 0) p->pending.append(buffer->base, static_cast<size_t>(n)), take_lines(*p);
    if (n < 0) close_pipe(&p->answers);
  });
  uv_read_start(reinterpret_cast<uv_stream_t*>(&p->noise), allocate, [](uv_stream_t* pipe, ssize_t n, const uv_buf_t* buffer) {
    auto* p = static_cast<Process*>(pipe->data);
    if (n > 0) {
      p->noise_text.append(buffer->base, static_cast<size_t>(n));
      if (p->noise_text.size() > kNoiseKept) p->noise_text.erase(0, p->noise_text.size() - kNoiseKept);
    }
    if (n < 0) close_pipe(&p->noise);
  });
  arm(*p, limit_ms);
}

struct Pool;
struct Worker {                            // one group, until all its ids have a record
  Pool* pool;
  std::deque<const Case*> left;
  std::string current;                     // id that has started; "" = none, or the plugin is being closed
  bool closing = false, closed = false;
  std::string last;                        // id of the last record
};

struct Pool {
  uv_loop_t loop;
  const GroupRun* run;
  std::deque<std::vector<const Case*>> groups;
  std::map<std::string, Record> records;

  void add(Record r) {
    if (run->on_record) run->on_record(r);
    records[r.id] = std::move(r);
  }
  uint64_t limit(double ms) const { return static_cast<uint64_t>(ms * run->time_factor); }
  void next_group();
  void start_child(Worker* w);
};

// A case that could not say anything itself: its duties say what was being checked.
std::string with_duties(std::string text, const Case& c) {
  for (const std::string& name : duties_of(c.duties))
    if (const Duty* d = find_duty(name)) text += fmt::format("; {} ({}): {}", name, d->slot, d->text);
  return text;
}

std::string with_noise(std::string text, const Process& p) {
  if (p.noise_text.empty()) return text;
  std::string noise = p.noise_text;
  while (!noise.empty() && noise.back() == '\n') noise.pop_back();
  return text + "; it printed: " + noise;
}

void child_said(Worker* w, Process& p, const std::string& line) {
  Json json = Json::parse(line);
  if (!json) return;
  const cJSON* start = cJSON_GetObjectItemCaseSensitive(json.get(), "start");
  if (cJSON_IsString(start)) {
    w->current = start->valuestring;
    w->closing = w->current.empty();
    arm(p, w->pool->limit(json_number(json.get(), "limit_ms", kDefaultLimitMs)));
    return;
  }
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json.get(), "closed"))) {
    w->closed = true;
    return;
  }
  Record r;
  r.id = json_text(json.get(), "id");
  r.text = json_text(json.get(), "text");
  r.ms = json_number(json.get(), "ms");
  if (!result_of(json_text(json.get(), "result"), &r.result)) r.result = Result::kFail;
  w->last = r.id;
  w->current.clear();
  if (!w->left.empty() && w->left.front()->id == r.id) w->left.pop_front();
  w->pool->add(std::move(r));
}

void child_ended(Worker* w, Process& p) {
  Pool* pool = w->pool;
  std::string how = p.ending();
  Result fault = p.timed_out ? Result::kTimeout : Result::kCrash;
  bool started = !w->current.empty();
  if (!w->left.empty() && (started || w->last.empty() || !how.empty())) {
    // Died in a case, or before the first one said anything: that case gets the blame and the rest another process.
    Record r;
    r.id = w->left.front()->id;
    r.result = fault;
    r.text = fmt::format("the process of this case {}", how.empty() ? "ended in the middle of it (the plugin called exit)" : how);
    r.text = with_noise(with_duties(r.text, *w->left.front()), p);
    w->left.pop_front();
    pool->add(std::move(r));
  } else if (w->left.empty() && !w->closed && !w->last.empty() && !is_fault(pool->records[w->last].result)) {
    Record r = pool->records[w->last];
    r.result = fault;
    r.text = with_noise(fmt::format("after the group's last case, closing its device and shutting the plugin down, the process {}",
                                    how.empty() ? "ended early" : how), p);
    pool->add(std::move(r));
  }
  if (w->left.empty()) {
    delete w;
    pool->next_group();
  } else {
    pool->start_child(w);
  }
}

void Pool::start_child(Worker* w) {
  w->current.clear();
  w->closing = w->closed = false;
  w->last.clear();
  std::vector<std::string> arguments = {"child", "--plugin", run->plugin, "--profile", run->profiles, "--seed", std::to_string(run->seed),
                                        "--repeat", std::to_string(run->repeat), "--"};
  for (const Case* c : w->left) arguments.push_back(c->id);
  start(&loop, run->program, arguments, run->environment, limit(kDefaultLimitMs),
        {[w](Process& p, const std::string& line) { child_said(w, p, line); }, [w](Process& p) { child_ended(w, p); }});
}

void Pool::next_group() {
  if (groups.empty()) return;
  auto* w = new Worker{this, {groups.front().begin(), groups.front().end()}, "", false, false, ""};
  groups.pop_front();
  start_child(w);
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::vector<Record> run_groups(const GroupRun& run, const std::vector<const Case*>& cases) {
  Pool pool;
  pool.run = &run;
  uv_loop_init(&pool.loop);
  std::string_view group;
  for (const Case* c : cases) {
    if (pool.groups.empty() || c->group() != group) pool.groups.emplace_back();
    group = c->group();
    pool.groups.back().push_back(c);
  }
  for (uint32_t i = 0; i < run.jobs; ++i) pool.next_group();
  uv_run(&pool.loop, UV_RUN_DEFAULT);
  uv_loop_close(&pool.loop);
  std::vector<Record> records;
  for (const Case* c : cases) records.push_back(std::move(pool.records[c->id]));
  return records;
}

std::vector<std::string> ask_child(const std::string& program, const std::vector<std::string>& arguments, uint64_t limit_ms,
                                   std::string* ended, const std::vector<std::pair<std::string, std::string>>& environment) {
  uv_loop_t loop;
  uv_loop_init(&loop);
  std::vector<std::string> lines;
  start(&loop, program, arguments, environment, limit_ms,
        {[&](Process&, const std::string& line) { lines.push_back(line); },
         [&](Process& p) { *ended = p.ending().empty() ? "" : with_noise(p.ending(), p); }});
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
  return lines;
}

}  // namespace flhal::conformance
